// Products of bfloat16 against the reference, within the bound of docs/design.md.
#include <cmath>
#include <limits>

#include "jit/attention/attention.h"
#include "jit/product/bf16.h"
#include "jit/product/product_bf16.h"
#include "kernels/numbers/short_floats.h"
#include "tests/jit/amx_emulator.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/attention_cases.h"
#include "tests/kernels/bfloat16_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Candidate;
using kernels::Precision;
using kernels::testing::ExpectSameInMemory;
using kernels::testing::InBothTypes;
using kernels::testing::kEpsilon;

constexpr Candidate kBf16 = Candidate::OfBFloat16("jit bf16", PlanProductBf16);
constexpr Candidate kFloat = Candidate::OfBFloat16("jit", PlanProductF32);
// With fewer rows the emitted kernels do not pack weights that are run-time values.
constexpr int32_t kMinRows = 4;

// Both operands of a product are rounded to eight bits: the bound is that of float32 sums and
// 2^-7 + 2^-16 more of the sum of magnitudes. This is the depth at which float32's is as large.
double DepthForBound(double depth) {
  const double root = std::sqrt(depth) + (0x1p-7 + 0x1p-16) / (4 * kEpsilon);
  return root * root;
}

// Instructions of the vectors, or AMX's, emulated where there are none.
enum class Instructions : uint8_t { kVectors, kTiles };

class JitBf16Test : public ::testing::TestWithParam<Instructions> {
 protected:
  void SetUp() override {
    const Isa machine = DetectIsa();
    if (!machine.has(Feature::kAvx512Bf16)) GTEST_SKIP() << "no AVX512-BF16 on this machine";
    // Cores with two ports refuse what has no tiles.
    isa_ = machine.without(Feature::kAmxBf16).without(Trait::kTwoVectorPorts);
    if (GetParam() == Instructions::kVectors) return;
    const auto tiles = IsaWithTiles(Feature::kAvx512Bf16);
    if (!tiles) GTEST_SKIP() << "no tiles on this machine, and none emulated";
    isa_ = *tiles;
  }

  // What the candidate makes against the reference; a second run with other splits and threads must
  // give the same bits. Nothing where it refuses what has no tiles.
  template <class Params>
  void Compare(OpTester& tester, double depth, Random& random) {
    if (kernels::ReadsUnpacked(tester.op)) return;
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const std::vector<float> bounds =
        kernels::testing::Bounds(tester, DepthForBound(depth), [](OpTester& plain) {
          if constexpr (!std::is_void_v<Params>) {
            plain.params<Params>().activation = kernels::Activation::kNone;
          }
        });
    tester.precision = Precision::kFast;
    if (GetParam() == Instructions::kTiles && !TakesTiles(tester)) return;
    const auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = tester.RunCandidate(kBf16, isa_, random.Int(1, 99), random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    kernels::testing::ExpectNear((*expected)[0], (*actual)[0], [&](int64_t i) { return bounds[i]; },
                                 "bf16");
    tester.threads = static_cast<int>(random.Int(1, 9));
    const auto same = tester.RunCandidate(kBf16, isa_, random.Int(100, 199), random.Int(0, 3));
    ASSERT_TRUE(same.ok()) << same.status().ToString();
    kernels::testing::ExpectSame<float>((*actual)[0], (*same)[0], "bf16 again");
    ++compared_;
  }

  static OpTester RandomProduct(Random& random) {
    switch (random.Int(0, 3)) {
      case 0: return kernels::testing::RandomTransposeConv(random, 3);
      case 1: return kernels::testing::RandomFullyConnected(random, kMinRows);
      default: return kernels::testing::RandomConv2D(random, {});
    }
  }

  bool TakesTiles(const OpTester& tester) const {
    const auto plan = kBf16.Plan(tester.op, {.isa = isa_, .precision = Precision::kFast});
    return plan.ok() && plan->kernel().name().find("amx") != std::string_view::npos;
  }

  Isa isa_;
  int compared_ = 0;
};

TEST_P(JitBf16Test, Convolutions) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomConv2D(random, {});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    if (tester.op.outputs[0].shape.elements(0, 3) < kMinRows) continue;
    Compare<kernels::Conv2DParams>(tester, tester.op.inputs[1].shape.elements(1, 4), random);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared_, 5);
}

TEST_P(JitBf16Test, FullyConnected) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomFullyConnected(random, kMinRows);
    ASSERT_TRUE(tester.Infer().ok());
    Compare<kernels::FullyConnectedParams>(tester, tester.op.inputs[1].shape.dim(-1), random);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared_, 5);
}

TEST_P(JitBf16Test, BatchedProducts) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomBatchMatMul(random, true, kMinRows);
    ASSERT_TRUE(tester.Infer().ok());
    Compare<void>(tester, kernels::testing::BatchMatMulDepth(tester), random);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared_, 5);
}

TEST_P(JitBf16Test, TransposedConvolutions) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomTransposeConv(random, 3);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    Compare<kernels::TransposeConvParams>(tester, tester.op.inputs[1].shape.elements(1, 4), random);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared_, 5);
}

// The largest sum of magnitudes of a score.
double LargestScore(const OpTester& tester) {
  const TestTensor &q = tester.inputs[0], &k = tester.inputs[1];
  const auto& params = tester.op.params.as<kernels::AttentionParams>();
  const Shape &qs = q.info().shape, &ks = k.info().shape;
  const int64_t depth = qs[3], keys = params.keys_by_rows ? ks[2] : ks[3];
  const int64_t row = params.keys_by_rows ? depth : 1, channel = params.keys_by_rows ? 1 : keys;
  double largest = 0;
  for (int64_t head = 0; head < qs.elements(0, 2); ++head) {
    for (int64_t query = 0; query < qs[2]; ++query) {
      for (int64_t key = 0; key < keys; ++key) {
        double sum = 0;
        for (int64_t c = 0; c < depth; ++c) {
          sum += std::abs(double{q.at<float>((head * qs[2] + query) * depth + c)} *
                          k.at<float>(head * keys * depth + key * row + c * channel));
        }
        largest = std::max(largest, sum * params.scale);
      }
    }
  }
  return largest;
}

// A score errs by 2^-7 of its sum of magnitudes, and a weight by twice that of itself, as its row's
// sum errs, too; weights and values, within [-2, 2], are rounded once more.
TEST_P(JitBf16Test, Attention) {
  constexpr Candidate kAttention("jit bf16", PlanAttentionBf16);
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomAttention(random);
    const Shape q = tester.op.inputs[0].shape;
    const int32_t keys = tester.op.inputs[2].shape[2];
    auto& params = tester.params<kernels::AttentionParams>();
    params.by_roots = random.Chance(0.3);
    if (tester.inputs.size() < 5 && random.Chance(0.4)) {
      const auto first = static_cast<int32_t>(random.Int(0, keys));
      tester.Input(kernels::testing::CausalMask(random, {q[2], keys}, first));
      params.hidden_is_zero = random.Chance(0.5);
    }
    ASSERT_TRUE(tester.Infer().ok());
    kernels::testing::PitchOutput(tester, random);
    tester.precision = Precision::kFast;
    const auto actual = tester.RunCandidate(kAttention, isa_, random.Int(1, 99), random.Int(0, 3));
    if (!actual.ok()) {
      const bool few = q[2] < 8 || (tester.inputs.size() > 3 && keys > 2 * q[2]);
      const bool slower = actual.status().message().find("without tiles") != std::string::npos;
      EXPECT_TRUE(few || (slower && GetParam() == Instructions::kTiles))
          << actual.status().ToString();
      continue;
    }
    const auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const double bound = 2 * (2 * 0x1p-7 * LargestScore(tester) + 0x1p-7);
    kernels::testing::ExpectNear((*expected)[0], (*actual)[0], [&](int64_t) { return bound; },
                                 "attention");
    tester.threads = static_cast<int>(random.Int(1, 9));
    const auto same = tester.RunCandidate(kAttention, isa_, random.Int(100, 199));
    ASSERT_TRUE(same.ok()) << same.status().ToString();
    kernels::testing::ExpectSame<float>((*actual)[0], (*same)[0], "attention again");
    ++compared_;
    if (HasFailure()) return;
  }
  EXPECT_GT(compared_, 30);
}

// Values that are bfloat16 in memory give what float32 of the same numbers give, rounded where the
// output is bfloat16: in products of bfloat16 and in those of float32.
TEST_P(JitBf16Test, ValuesInMemory) {
  int products = 0, in_floats = 0, in_reference = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomProduct(random);
    ASSERT_TRUE(tester.Infer().ok());
    if (kernels::ReadsUnpacked(tester.op)) continue;
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    tester.precision = Precision::kFast;
    tester.threads = static_cast<int>(random.Int(1, 3));
    const InBothTypes both =
        kernels::testing::WithBFloat16(tester, tester.op.op->product_inputs->x, random);
    products += ExpectSameInMemory(both, kBf16, isa_, random);
    in_floats += ExpectSameInMemory(both, kFloat, isa_, random);
    if (seed % 4 != 0) continue;
    const auto expected = both.floats.Run("reference", Isa::kScalar, seed);
    const auto actual = both.shorts.Run("reference", Isa::kScalar, seed, random.Int(0, 3));
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().ToString();
    kernels::testing::ExpectStored((*expected)[0], (*actual)[0], false, "reference");
    ++in_reference;
    if (HasFailure()) return;
  }
  EXPECT_GT(products, 20);
  EXPECT_GT(in_floats, 20);
  EXPECT_GT(in_reference, 20);
}

// Rows whose odd last value stands before another row's infinity: the pair that holds it must not
// multiply the infinity by its zero.
TEST_P(JitBf16Test, ValuesOfOtherRowsDoNotMatter) {
  constexpr int32_t kRows = 9;
  for (const int32_t depth : {1, 3, 33, 257}) {
    OpTester tester("FULLY_CONNECTED");
    TestTensor input({.type = DataType::kFloat32, .shape = {kRows, depth}});
    TestTensor weights({.type = DataType::kFloat32, .shape = {20, depth}});
    for (int64_t i = 0; i < input.info().elements(); ++i) {
      input.at<float>(i) = i / depth % 2 == 0 ? 1 : std::numeric_limits<float>::infinity();
    }
    for (int64_t i = 0; i < weights.info().elements(); ++i) weights.at<float>(i) = 1;
    tester.Input(input).Constant(weights);
    tester.precision = Precision::kFast;
    ASSERT_TRUE(tester.Infer().ok());
    if (GetParam() == Instructions::kTiles && !TakesTiles(tester)) continue;
    const auto actual = tester.RunCandidate(kBf16, isa_);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    for (int64_t i = 0; i < kRows * 20; i += 2 * 20) {
      EXPECT_EQ((*actual)[0].at<float>(i), static_cast<float>(depth)) << "depth " << depth;
      if (i + 20 < kRows * 20) {
        EXPECT_EQ((*actual)[0].at<float>(i + 20), std::numeric_limits<float>::infinity());
      }
    }
  }
}

// Rounding is that of kernels/numbers/short_floats.h but for denormals, whatever the number of
// values.
TEST(RoundToBf16Test, IsThatOfTheReference) {
  if (!DetectIsa().has(Feature::kAvx512Bf16)) GTEST_SKIP() << "no AVX512-BF16 on this machine";
  Random random(7);
  const auto rounded = [](float value) -> uint32_t {
    if (std::fpclassify(value) == FP_SUBNORMAL) return std::signbit(value) ? 0x8000 : 0;
    return kernels::FloatToBFloat16(value);
  };
  std::vector<float> values = {0.0f,        -0.0f,       1e-40f,      -1e-40f,
                               1 + 0x1p-8f, 1 + 0x3p-8f, -1 - 0x1p-8f};
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::signaling_NaN(), std::numeric_limits<float>::max()}) {
    values.push_back(value);
    values.push_back(-value);
  }
  while (values.size() < 300) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.Int(0, UINT32_MAX))));
  }
  for (const int64_t count : {0, 1, 15, 16, 17, 31, 32, 33, 47, 64, 299}) {
    std::vector<uint16_t> words(values.size(), 0x1234);
    std::vector<uint32_t> pairs(values.size(), 0x12345678), halves(pairs);
    RoundToBf16(values.data() + 1, count, words.data() + 1);
    RoundToBf16Pairs(values.data(), values.data() + 1, count, pairs.data() + 1);
    RoundToBf16Pairs(values.data(), nullptr, count, halves.data() + 1);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(words[i + 1], rounded(values[i + 1])) << values[i + 1];
      EXPECT_EQ(pairs[i + 1], rounded(values[i]) | rounded(values[i + 1]) << 16);
      EXPECT_EQ(halves[i + 1], rounded(values[i]));
    }
    for (const int64_t beside : {int64_t{0}, count + 1}) {
      if (beside == static_cast<int64_t>(values.size())) continue;
      EXPECT_EQ(words[beside], 0x1234);
      EXPECT_EQ(pairs[beside], 0x12345678u);
      EXPECT_EQ(halves[beside], 0x12345678u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, JitBf16Test,
                         ::testing::Values(Instructions::kVectors, Instructions::kTiles),
                         [](const auto& info) {
                           return info.param == Instructions::kTiles ? "Tiles" : "Vectors";
                         });

// This holds on every machine: nothing is run.
TEST(Bf16RefusalTest, TellsWhy) {
  OpTester tester("FULLY_CONNECTED");
  tester.Input(TestTensor({.type = DataType::kFloat32, .shape = {9, 8}}));
  tester.Constant(TestTensor({.type = DataType::kFloat32, .shape = {32, 8}}));
  ASSERT_TRUE(tester.Infer().ok());
  const auto answer = [&](Isa isa, Precision precision) -> std::string {
    const auto plan = kBf16.Plan(tester.op, {.isa = isa, .precision = precision});
    return plan.ok() ? std::string(plan->kernel().name()) : plan.status().ToString();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(answer(Isa::kAvx512Bf16, Precision::kFast), HasSubstr("bf16 9x32 avx512bf16 jit"));
  EXPECT_THAT(answer(Isa::kAvx512Bf16.with(Trait::kTwoVectorPorts), Precision::kFast),
              HasSubstr("multiplies float32 faster"));
  EXPECT_THAT(answer(Isa::kAvx512Bf16, Precision::kDefault), HasSubstr("precision=fast"));
  EXPECT_THAT(answer(Isa::kAvx512Vnni, Precision::kFast), HasSubstr("needs AVX512-BF16"));
  EXPECT_THAT(answer(Isa::kAvx2, Precision::kFast), HasSubstr("isa=avx2"));
  EXPECT_THAT(answer(Isa::kNeon, Precision::kFast), HasSubstr("isa=neon"));
}

}  // namespace
}  // namespace fuselite::jit::testing
