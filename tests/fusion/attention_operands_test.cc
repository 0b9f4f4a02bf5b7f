// What stands between layers or caches and attention: scales of its operands,
// and keys and values that heads share.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

constexpr float kRoot = 0.35f;

int64_t Count(const Outcome& outcome, std::string_view op) {
  const std::vector<std::string> ops = outcome.ops();
  return std::ranges::count_if(ops, [&](const auto& name) { return name.starts_with(op); });
}

ValueId Attention(GraphBuilder& b, ValueId q, ValueId k, ValueId v, bool keys_by_rows,
                  ValueId mask = kNone) {
  ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", keys_by_rows}});
  if (mask != kNone) scores = b.Op("ADD", {scores, mask});
  return b.Op("BATCH_MATMUL", {b.Op("SOFTMAX", {scores}, {{"beta", 1}}), v});
}

// Rows of a layer as [1, 3, rows, 8], multiplied by `factor` before heads are
// made of them, or behind.
ValueId ScaledHeads(GraphBuilder& b, int32_t rows, ValueId factor, bool before,
                    std::vector<int32_t> permutation = {0, 2, 1, 3}) {
  ValueId x = b.Op("NEG", {b.Input({1, rows, 24})});
  if (before) x = b.Op("MUL", {x, factor});
  x = b.Op("TRANSPOSE", {b.Op("RESHAPE", {x, b.Ints({1, rows, 3, 8})}), b.Ints(permutation)});
  return before ? x : b.Op("MUL", {factor, x});
}

ValueId Values(GraphBuilder& b, int32_t rows) {
  const ValueId x = b.Op("RESHAPE", {b.Op("NEG", {b.Input({1, rows, 24})}),  //
                                     b.Ints({1, rows, 3, 8})});
  return b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})});
}

void OutputRows(GraphBuilder& b, ValueId y, int32_t rows) {
  y = b.Op("RESHAPE", {b.Op("TRANSPOSE", {y, b.Ints({0, 2, 1, 3})}), b.Ints({rows, 24})});
  b.Output(b.Op("NEG", {y}));
}

TEST(AttentionScale, OfBothOperandsGoesIntoAttention) {
  for (const bool before : {false, true}) {
    for (const bool turned : {false, true}) {
      GraphBuilder b;
      const ValueId root = b.Scalar(kRoot);
      const ValueId q = ScaledHeads(b, 9, root, before);
      ValueId k = turned ? ScaledHeads(b, 11, root, before, {0, 2, 3, 1})
                         : ScaledHeads(b, 11, root, before);
      OutputRows(b, Attention(b, q, k, Values(b, 11), !turned), 9);
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                  ElementsAre("NEG", "NEG", "NEG", "FUSELITE_ATTENTION + neg"));
    }
  }
}

// Squares that are no normal floats lose the number that they are of.
TEST(AttentionScale, StaysWhereItsSquareIsNoNormalFloat) {
  for (const float root : {0.0f, 1e-25f, 3e19f}) {
    GraphBuilder b;
    const ValueId size = b.Scalar(root == 0 ? 1 : 1 / root);
    const auto scaled = [&](int32_t rows) {
      const ValueId x = b.Op("MUL", {b.Op("NEG", {b.Input({3, rows, 8})}), size});
      return b.Op("MUL", {b.Op("NEG", {x}), b.Scalar(root)});
    };
    const ValueId q = scaled(9), k = scaled(11);
    b.Output(b.Op("NEG", {Attention(b, q, k, b.Input({3, 11, 8}), true)}));
    EXPECT_EQ(Count(ExpectSameFused(b.graph(), 2e-5f), "FUSELITE_ATTENTION"), 1);
  }
}

// Numbers that are no roots are part of the scores' own scale: of queries, of keys, of both.
TEST(AttentionScale, OfEitherOperandIsThatOfTheScores) {
  for (const int scaled : {1, 2, 3}) {
    for (const bool scores_scaled : {false, true}) {
      GraphBuilder b;
      ValueId q = b.Op("NEG", {b.Input({3, 9, 8})}), k = b.Op("NEG", {b.Input({3, 11, 8})});
      if (scaled & 1) q = b.Op("MUL", {q, b.Scalar(kRoot)});
      if (scaled & 2) k = b.Op("MUL", {k, b.Scalar(scores_scaled ? kRoot : 0.5f)});
      ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", 1}});
      if (scores_scaled) scores = b.Op("MUL", {scores, b.Scalar(0.5f)});
      const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
      b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, b.Input({3, 11, 8})})}));
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                  ElementsAre("NEG", "NEG", "FUSELITE_ATTENTION + neg"));
    }
  }
}

// What is not the factor of an operand alone: others read the product, it is clamped, and its
// factor gives it a dimension.
TEST(AttentionScale, StaysWhereItIsNotOfTheOperandsAlone) {
  for (const int wrong : {0, 1, 2}) {
    SCOPED_TRACE(wrong);
    GraphBuilder b;
    const ValueId root = wrong == 2 ? b.Constant({1, 1, 1, 1}, {kRoot}) : b.Scalar(kRoot);
    const Attributes clamp = {{"fused_activation_function", wrong == 1 ? kRelu : 0}};
    const ValueId q = b.Op("MUL", {b.Input({3, 9, 8}), root}, clamp);
    const ValueId k = b.Op("MUL", {b.Input({3, 11, 8}), root}, clamp);
    if (wrong == 0) b.Output(q);
    if (wrong == 0) b.Output(k);
    const ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", 1}});
    const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
    const ValueId v = wrong == 2 ? b.Input({1, 3, 11, 8}) : b.Input({3, 11, 8});
    b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
    EXPECT_EQ(Count(ExpectFusedEqualsUnfused(b.graph(), 2e-5f), "MUL"), 2);
  }
}

// A mask that is computed comes by steps that lead from the product to the scores, too.
TEST(AttentionMask, IsToldFromTheScores) {
  for (const bool first : {false, true}) {
    GraphBuilder b;
    const ValueId q = b.Op("NEG", {b.Input({3, 9, 8})}), k = b.Op("NEG", {b.Input({3, 11, 8})});
    const ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", 1}});
    const ValueId mask = b.Op("MUL", {b.Input({1, 9, 11}), b.Scalar(-3)});
    const ValueId sum = first ? b.Op("ADD", {mask, scores}) : b.Op("ADD", {scores, mask});
    const ValueId weights = b.Op("SOFTMAX", {sum}, {{"beta", 1}});
    b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, b.Input({3, 11, 8})})}));
    EXPECT_EQ(Count(ExpectFusedEqualsUnfused(b.graph(), 2e-5f), "FUSELITE_ATTENTION"), 1);
  }
}

// [batches, heads, rows, 8], each head of `x` [batches, groups, rows, 8]
// `times` in a row, as the PyTorch converter or Keras writes it.
ValueId ForGroups(GraphBuilder& b, ValueId x, int32_t times, bool tiled = false) {
  const Shape s = b.shape(x);
  x = b.Op("RESHAPE", {x, b.Ints({s[0], s[1], 1, s[2], s[3]})});
  x = tiled ? b.Op("TILE", {x, b.Ints({1, 1, times, 1, 1})})
            : b.Op("BROADCAST_TO", {x, b.Ints({s[0], s[1], times, s[2], s[3]})});
  return b.Op("RESHAPE", {x, b.Ints({s[0], s[1] * times, s[2], s[3]})});
}

// Keys and values of a cache, [batch, head, row, channel].
TEST(AttentionGroups, ShareKeysAndValues) {
  for (const int32_t batches : {1, 2}) {
    for (const int32_t groups : {1, 3}) {
      for (const bool turned : {false, true}) {
        for (const int32_t queries : {1, 9}) {
          GraphBuilder b;
          const ValueId q = b.Op("NEG", {b.Input({batches, 2 * groups, queries, 8})});
          const bool tiled = queries > 1;
          ValueId k = ForGroups(b, b.Input({batches, groups, 20, 8}), 2, tiled);
          if (turned) k = b.Op("TRANSPOSE", {k, b.Ints({0, 1, 3, 2})});
          const ValueId v = ForGroups(b, b.Input({batches, groups, 20, 8}), 2, tiled);
          const ValueId mask = b.Input({batches, 2 * groups, queries, 20});
          b.Output(b.Op("NEG", {Attention(b, q, k, v, !turned, mask)}));
          const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
          EXPECT_EQ(Count(outcome, "FUSELITE_ATTENTION"), 1);
          EXPECT_EQ(Count(outcome, "BROADCAST_TO") + Count(outcome, "TILE"), 0);
        }
      }
    }
  }
}

// Keys and values are rows as layers leave them, and attention reads these.
TEST(AttentionGroups, ReadKeysAndValuesWhereLayersLeaveThem) {
  for (const int32_t groups : {1, 2}) {
    GraphBuilder b;
    const auto heads = [&](int32_t rows, int32_t count) {
      const ValueId x = b.Op("NEG", {b.Input({1, rows, count * 8})});
      return b.Op("TRANSPOSE", {b.Op("RESHAPE", {x, b.Ints({1, rows, count, 8})}),  //
                                b.Ints({0, 2, 1, 3})});
    };
    const int32_t times = 4 / groups;
    const ValueId root = b.Scalar(kRoot);
    const ValueId q = b.Op("MUL", {heads(9, 4), root});
    ValueId k = b.Op("MUL", {ForGroups(b, heads(11, groups), times), root});
    k = b.Op("RESHAPE", {b.Op("TRANSPOSE", {k, b.Ints({0, 1, 3, 2})}), b.Ints({4, 8, 11})});
    const ValueId v = b.Op("RESHAPE", {ForGroups(b, heads(11, groups), times),  //
                                       b.Ints({4, 11, 8})});
    ValueId y = Attention(b, b.Op("RESHAPE", {q, b.Ints({4, 9, 8})}), k, v, false);
    y = b.Op("TRANSPOSE", {b.Op("RESHAPE", {y, b.Ints({1, 4, 9, 8})}), b.Ints({0, 2, 1, 3})});
    b.Output(b.Op("NEG", {b.Op("RESHAPE", {y, b.Ints({9, 32})})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                ElementsAre("NEG", "NEG", "NEG", "FUSELITE_ATTENTION + neg"));
  }
}

// Heads that take turns, runs across the batches, rows that repeat, two
// dimensions that do, keys alone, and groups of unlike sizes.
TEST(AttentionGroups, NotOfOtherRepetitions) {
  struct Case {
    std::vector<int32_t> from, to;
  };
  const std::vector<Case> cases = {
      {{1, 1, 3, 20, 8}, {1, 2, 3, 20, 8}}, {{3, 1, 20, 8}, {3, 4, 20, 8}},
      {{1, 6, 10, 1, 8}, {1, 6, 10, 2, 8}}, {{1, 1, 1, 20, 8}, {2, 1, 3, 20, 8}},
      {{1, 3, 1, 20, 8}, {1, 3, 2, 20, 8}}, {{1, 2, 1, 20, 8}, {1, 2, 3, 20, 8}}};
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    GraphBuilder b;
    const int32_t batches = i == 1 || i == 3 ? 2 : 1, heads = i == 3 ? 3 : 6;
    const auto repeated = [&](const Case& c) {
      const ValueId x = b.Op("BROADCAST_TO", {b.Input(Shape(c.from)), b.Ints(c.to)});
      return b.Op("RESHAPE", {x, b.Ints({batches, heads, 20, 8})});
    };
    const ValueId k = repeated(cases[i]);
    const ValueId v = i == 4   ? b.Input({batches, heads, 20, 8})
                      : i == 5 ? repeated(cases[4])
                               : repeated(cases[i]);
    const ValueId q = b.Op("NEG", {b.Input({batches, heads, 9, 8})});
    b.Output(b.Op("NEG", {Attention(b, q, k, v, true)}));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
    EXPECT_EQ(Count(outcome, "FUSELITE_ATTENTION"), 1);
    EXPECT_GE(Count(outcome, "BROADCAST_TO"), 1);
  }
}

// A TILE of more than one element repeats runs of them, not each: heads take turns.
TEST(AttentionGroups, NotOfHeadsThatAreTiled) {
  GraphBuilder b;
  const auto tiled = [&] {
    return b.Op("TILE", {b.Op("NEG", {b.Input({1, 3, 20, 8})}), b.Ints({1, 2, 1, 1})});
  };
  const ValueId k = tiled(), v = tiled(), q = b.Op("NEG", {b.Input({1, 6, 9, 8})});
  b.Output(b.Op("NEG", {Attention(b, q, k, v, true)}));
  EXPECT_EQ(Count(ExpectFusedEqualsUnfused(b.graph(), 2e-5f), "TILE"), 2);
}

// Gemma multiplies the rows of all heads of a group at once, and caps their scores. A mask has
// groups and heads apart.
TEST(AttentionGroups, OfRowsOfSeveralHeads) {
  for (const int32_t batches : {1, 2}) {
    for (const bool capped : {false, true}) {
      for (const bool masked : {false, true}) {
        GraphBuilder b;
        const auto matrices = [&](int32_t rows, int32_t width) {
          return b.Op("NEG", {b.Input({batches, 2, rows, width})});
        };
        const ValueId q = matrices(3 * 9, 8), k = matrices(8, 11), v = matrices(11, 8);
        ValueId x = b.Op("BATCH_MATMUL", {q, k});
        x = b.Op("RESHAPE", {x, b.Ints({batches, 2, 3, 9, 11})});
        if (capped) {
          x = b.Op("TANH", {b.Op("DIV", {x, b.Scalar(5)})});
          x = b.Op("MUL", {x, b.Scalar(5)});
        }
        if (masked) x = b.Op("ADD", {x, b.Op("NEG", {b.Input({batches, 1, 1, 9, 11})})});
        x = b.Op("RESHAPE", {b.Softmax(x), b.Ints({batches, 2, 3 * 9, 11})});
        b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {x, v})}));
        const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
        EXPECT_EQ(Count(outcome, "FUSELITE_ATTENTION"), 1);
        EXPECT_EQ(Count(outcome, "TANH"), 0);
      }
    }
  }
}

// Keys and values that repeat along the batches.
TEST(AttentionGroups, NotOfOtherProducts) {
  GraphBuilder b;
  const auto matrices = [&](Shape shape) { return b.Op("NEG", {b.Input(shape)}); };
  const ValueId q = matrices({2, 3, 9, 8});
  const ValueId k = matrices({1, 3, 11, 8}), v = matrices({1, 3, 11, 8});
  b.Output(b.Op("NEG", {Attention(b, q, k, v, true)}));
  EXPECT_EQ(Count(ExpectFusedEqualsUnfused(b.graph(), 2e-5f), "FUSELITE_ATTENTION"), 0);
}

}  // namespace
}  // namespace fuselite::fusion::testing
