// Masks of scores before SOFTMAX, as exporters write them, and numbers that change no weight.
#include <algorithm>
#include <limits>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

constexpr float kTolerance = 2e-5f, kLow = -2.4e38f;
constexpr int32_t kRows = 4, kKeys = 5;

// Scores of this run.
ValueId Scores(GraphBuilder& b) { return b.Op("NEG", {b.Input({2, 3, kRows, kKeys})}); }

// The plan of the weights of `scores`.
std::vector<std::string> WeightsOf(GraphBuilder& b, ValueId scores) {
  b.Output(b.Op("NEG", {b.Softmax(scores)}));
  return ExpectFusedEqualsUnfused(b.graph(), kTolerance).ops();
}
// Without the graphs that differ in one place: of divisions by zeros a SOFTMAX makes NaN.
std::vector<std::string> WeightsOfThis(GraphBuilder& b, ValueId scores) {
  b.Output(b.Op("NEG", {b.Softmax(scores)}));
  return ExpectSameFused(b.graph(), kTolerance).ops();
}

std::vector<std::string> MaskedBy(GraphBuilder& b, ValueId condition, float low) {
  return WeightsOf(b, b.Op("SELECT_V2", {condition, Scores(b), b.Scalar(low)}));
}

TEST(MaskByAddition, OfConditionsThatRepeat) {
  for (const Shape& shape : {Shape({1, 1, 4, 5}), Shape({5}), Shape({1}), Shape({2, 3, 4, 5})}) {
    for (const float low : {-1e9f, -1e10f, kLow, -std::numeric_limits<float>::infinity()}) {
      // No row is masked whole: of infinities alone there are no weights.
      GraphBuilder b;
      const auto n = static_cast<int32_t>(shape.elements());
      std::vector<int32_t> numbers;
      for (int32_t i = 0; i < n; ++i) numbers.push_back(n == 1 ? 0 : i % 5);
      const ValueId seen = b.Op("LESS", {b.Ints(shape, numbers), b.Ints({1}, {3})});
      EXPECT_THAT(MaskedBy(b, seen, low), ElementsAre("NEG + add", "SOFTMAX", "NEG"));
    }
  }
}

// A row of which nothing is seen has equal weights.
TEST(MaskByAddition, OfWholeRows) {
  GraphBuilder b;
  const ValueId seen = b.Op("LESS", {b.Ints({4, 1}, {7, 1, 9, 8}), b.Ints({1}, {3})});
  EXPECT_THAT(MaskedBy(b, seen, kLow), ElementsAre("NEG + add", "SOFTMAX", "NEG"));
}

TEST(MaskByAddition, NotWhereScoresWouldBeSeen) {
  GraphBuilder b;
  const ValueId seen = b.Op("LESS", {b.Ints({5}, {1, 2, 3, 4, 5}), b.Ints({1}, {4})});
  EXPECT_THAT(MaskedBy(b, seen, -1e4f), Contains(StartsWith("SELECT_V2")));
}

// GPT-J scales what it has masked.
TEST(MaskByAddition, OfScaledChoices) {
  for (const float scale : {0.125f, 2.0f, -0.5f}) {
    SCOPED_TRACE(scale);
    GraphBuilder b;
    const ValueId seen = b.Op("LESS", {b.Ints({kKeys}, {1, 5, 2, 7, 0}), b.Ints({1}, {3})});
    const ValueId chosen = b.Op("SELECT_V2", {seen, Scores(b), b.Scalar(-1e9f)});
    const auto ops = WeightsOf(b, b.Op("MUL", {chosen, b.Scalar(scale)}));
    if (scale < 0) {
      EXPECT_THAT(ops, Contains(StartsWith("SELECT_V2")));
    } else {
      EXPECT_THAT(ops, ElementsAre("NEG + mul + add", "SOFTMAX", "NEG"));
    }
  }
}

// DistilBERT subtracts a mask of which it has a row for each sentence.
TEST(MaskByAddition, OfDifferences) {
  GraphBuilder b;
  const ValueId padded = b.Op("NEG", {b.Input({2, 1, 1, kKeys})});
  EXPECT_THAT(WeightsOf(b, b.Op("SUB", {Scores(b), padded})),
              ElementsAre("NEG + neg", "NEG + add", "SOFTMAX", "NEG"));
}

TEST(MaskByAddition, NotOfWholeScores) {
  GraphBuilder b;
  const ValueId x = Scores(b), y = Scores(b);
  EXPECT_THAT(WeightsOf(b, b.Op("SUB", {x, y})), Contains("NEG + reverse_sub"));
}

struct Hidden {
  const char* op;
  float low;
  int zeros_in_last_row;
  bool masks;
};

// GPT-2: scores * seen - hidden, where each row sees something.
TEST(MaskByAddition, OfProductsWithZerosAndOnes) {
  for (const Hidden& c :
       {Hidden{"SUB", 1e4f, 0, true}, Hidden{"ADD", -1e4f, 1, true}, Hidden{"SUB", 9e3f, 1, false},
        Hidden{"ADD", 1e4f, 1, false}, Hidden{"SUB", 1e4f, kKeys, false}}) {
    SCOPED_TRACE(::testing::Message() << c.op << " " << c.low << " " << c.zeros_in_last_row);
    GraphBuilder b;
    std::vector<float> seen(kRows * kKeys, 1), hidden(kRows * kKeys, 0);
    const auto hide = [&](int row, int key) {
      seen[row * kKeys + key] = 0;
      hidden[row * kKeys + key] = c.low;
    };
    for (int key = 2; key < kKeys; ++key) hide(1, key);
    for (int key = 0; key < c.zeros_in_last_row; ++key) hide(kRows - 1, key);
    const ValueId x = b.Op("MUL", {Scores(b), b.Constant({1, 1, kRows, kKeys}, seen)});
    const auto ops = WeightsOfThis(b, b.Op(c.op, {x, b.Constant({1, 1, kRows, kKeys}, hidden)}));
    EXPECT_EQ(ops[0] == "NEG + add", c.masks) << ops[0];
  }
}

// What is seen may be weighed: a bias for each distance stays in the mask.
TEST(MaskByAddition, KeepsWhatSeenScoresGet) {
  GraphBuilder b;
  const ValueId seen = b.Constant({kKeys}, std::vector<float>{1, 1, 0, 1, 0});
  const ValueId x = b.Op("MUL", {Scores(b), seen});
  EXPECT_THAT(
      WeightsOfThis(
          b, b.Op("SUB", {x, b.Constant({kKeys}, std::vector<float>{0.5f, -2, 2e4f, 0, 1e5f})})),
      ElementsAre("NEG + add", "SOFTMAX", "NEG"));
}

TEST(DropShiftOfScores, OfSmallNumbers) {
  for (const float shift : {1e-9f, -1.0f}) {
    for (const char* op : {"ADD", "SUB"}) {
      GraphBuilder b;
      EXPECT_THAT(WeightsOf(b, b.Op(op, {Scores(b), b.Scalar(shift)})),
                  ElementsAre("NEG", "SOFTMAX", "NEG"));
    }
  }
  GraphBuilder b;
  EXPECT_THAT(WeightsOf(b, b.Op("ADD", {b.Scalar(1e-9f), Scores(b)})),
              ElementsAre("NEG", "SOFTMAX", "NEG"));
}

TEST(DropShiftOfScores, NotOfOthers) {
  {
    GraphBuilder b;  // large enough to round scores off
    EXPECT_THAT(WeightsOf(b, b.Op("ADD", {Scores(b), b.Scalar(64.0f)})), Contains("NEG + add"));
  }
  {
    GraphBuilder b;  // 1 - x
    EXPECT_THAT(WeightsOf(b, b.Op("SUB", {b.Scalar(1.0f), Scores(b)})),
                Contains(StartsWith("NEG + ")));
  }
  {
    GraphBuilder b;  // seen elsewhere
    const ValueId x = b.Op("ADD", {Scores(b), b.Scalar(1e-9f)});
    b.Output(x);
    EXPECT_THAT(WeightsOf(b, x), Contains("NEG + add"));
  }
}

// A bias, a mask by distance and padding are added, all of which a scale follows.
TEST(RecognizeAttention, OfSeveralMasks) {
  for (const bool scaled : {false, true}) {
    SCOPED_TRACE(scaled);
    GraphBuilder b;
    const auto matrices = [&](int32_t rows) { return b.Op("NEG", {b.Input({2, 3, rows, 8})}); };
    const ValueId q = matrices(kRows), k = matrices(kKeys), v = matrices(kKeys);
    ValueId x = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", 1}});
    x = b.Op("ADD", {x, b.Constant({3, kRows, kKeys})});
    x = b.Op("ADD", {x, b.Op("NEG", {b.Input({1, 3, kRows, kKeys})})});
    x = b.Op("ADD", {b.Input({2, 1, 1, kKeys}), x});
    if (scaled) x = b.Op("MUL", {x, b.Scalar(0.25f)});
    b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {b.Softmax(x), v})}));
    const auto ops = ExpectFusedEqualsUnfused(b.graph(), kTolerance).ops();
    EXPECT_THAT(ops, Contains(StartsWith("FUSELITE_ATTENTION")));
    EXPECT_THAT(ops, Not(Contains(StartsWith("SOFTMAX"))));
  }
}

// Keras hides weights once more, where their scores are hidden.
struct HiddenTwice {
  bool known = false, another = false;  // the condition, and whether weights have one of their own
  float low = kLow, weight = 0;
  bool biased = false, scaled = false;  // behind the bias
};
std::vector<std::string> AttentionThatHides(GraphBuilder& b, HiddenTwice form) {
  const auto matrices = [&](int32_t rows) { return b.Op("NEG", {b.Input({2, 3, rows, 8})}); };
  const ValueId q = matrices(kRows), k = matrices(kKeys), v = matrices(kKeys);
  // Larger scores would not round off against -1e9, nor those of graphs with another scale.
  const ValueId scale = b.Scalar(0.05f);
  ValueId x = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", 1}});
  if (!form.scaled) x = b.Op("MUL", {x, scale});
  if (form.biased) x = b.Op("ADD", {x, b.Op("NEG", {b.Input({1, 3, 1, kKeys})})});
  if (form.scaled) x = b.Op("MUL", {x, scale});
  // The first row sees nothing, each of the others one key more.
  std::vector<int32_t> numbers;
  for (int32_t i = 0; i < kRows * kKeys; ++i) numbers.push_back(i % kKeys - i / kKeys);
  const Shape shape = {kRows, kKeys};
  const auto seen = [&](int32_t below) {
    const ValueId first = form.known ? b.Ints({1}, {below}) : b.Input({1}, DataType::kInt32);
    return b.Op("LESS", {b.Ints(shape, numbers), first});
  };
  const ValueId condition = seen(0);
  x = b.Op("SELECT_V2", {condition, x, b.Scalar(form.low)});
  const ValueId which = form.another ? seen(1) : condition;
  const ValueId weights = b.Op("SELECT_V2", {which, b.Softmax(x), b.Scalar(form.weight)});
  b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
  return (form.low == kLow ? ExpectFusedEqualsUnfused(b.graph(), kTolerance)
                           : ExpectSameFused(b.graph(), kTolerance))
      .ops();
}

TEST(RecognizeAttention, OfWeightsThatAreHiddenToo) {
  for (const bool known : {false, true}) {
    for (const float low : {-1e9f, kLow}) {
      for (const bool biased : {false, true}) {
        for (const bool scaled : {false, true}) {
          GraphBuilder b;
          const auto ops = AttentionThatHides(
              b, {.known = known, .low = low, .biased = biased, .scaled = scaled});
          EXPECT_THAT(ops, Contains(StartsWith("FUSELITE_ATTENTION")));
          EXPECT_THAT(ops, Not(Contains(StartsWith("SOFTMAX"))));
        }
      }
    }
  }
}

TEST(RecognizeAttention, NotOfWeightsThatAreHiddenOtherwise) {
  for (const HiddenTwice form : {HiddenTwice{.another = true},
                                 {.known = true, .another = true},
                                 {.low = -1e8f},
                                 {.weight = 1}}) {
    GraphBuilder b;
    EXPECT_THAT(AttentionThatHides(b, form), Not(Contains(StartsWith("FUSELITE_ATTENTION"))));
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
