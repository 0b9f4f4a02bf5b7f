// Stages alone: a 1x1 convolution with one channel of weight 1 hands its input to the tail.
#include <algorithm>
#include <cmath>

#include "jit/tail/tail_emitter.h"
#include "kernels/conv2d/conv2d.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

// Values over many magnitudes, and the special ones.
TestTensor Values(Random& random, int32_t n) {
  TestTensor values({.type = kF32, .shape = {1, n, 1, 1}});
  for (int32_t i = 0; i < n; ++i) {
    const float magnitude = std::exp2(random.Float(-20, 7));
    values.at<float>(i) = random.Chance(0.5) ? magnitude : -magnitude;
  }
  const float specials[] = {0.0f, -0.0f, 3e38f,  -3e38f,   NAN,       1e30f,  -1e30f,
                            3.0f, -3.0f, 1e-45f, 1.1e-38f, 0x1p-126f, 9e-39f, -1e-40f};
  for (size_t i = 0; i < std::size(specials); ++i) values.at<float>(i * 3) = specials[i];
  return values;
}

// All channels carry the same value, so that every lane and the partial vector are met.
OpTester PassThrough(const TestTensor& values, int32_t channels, Random& random) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<kernels::Conv2DParams>();
  params.stride_w = params.stride_h = 1;
  TestTensor filter({.type = kF32, .shape = {channels, 1, 1, 1}}, 4 * random.Int(0, 3));
  filter.Fill(random, 1, 1);
  tester.Input(values).Constant(filter).Absent();
  return tester;
}

void CompareUlps(OpTester& tester, float ulps, float absolute, Random& random) {
  auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok());
  std::vector<float> bounds;
  for (float e : (*expected)[0].values<float>()) {
    bounds.push_back(std::abs(e) * ulps * 0x1p-23f + absolute);
  }
  CompareJit(tester, bounds, random);
}

struct Case {
  UnaryKind kind;
  float a, b, ulps, absolute;
};

// The tolerance is relative where a function keeps it near zero; GELU's reference itself rounds
// 1 + erf, whose error the argument multiplies.
TEST(TailEmitterTest, FunctionsAgreeWithTheReference) {
  const Case cases[] = {
      {UnaryKind::kIdentity, 0, 0, 0, 0},
      {UnaryKind::kClamp, -1, 2.5f, 0, 0},
      {UnaryKind::kClamp, 0, INFINITY, 0, 0},
      {UnaryKind::kLeakyRelu, 0.3f, 0, 0, 0},
      {UnaryKind::kGelu, 0, 0, 6, 4e-6f},
      {UnaryKind::kGeluTanh, 0, 0, 6, 4e-6f},
      {UnaryKind::kHardSwish, 0, 0, 2, 1e-44f},
      {UnaryKind::kHardSigmoid, 0.2f, 0.5f, 0, 0},
      {UnaryKind::kLogistic, 0, 0, 6, 2e-38f},
      {UnaryKind::kSilu, 0, 0, 7, 1e-35f},
      {UnaryKind::kTanh, 0, 0, 6, 0},
      {UnaryKind::kExp, 0, 0, 6, 1e-44f},
      {UnaryKind::kSqrt, 0, 0, 0, 0},
      {UnaryKind::kRsqrt, 0, 0, 2, 0},
      {UnaryKind::kAbs, 0, 0, 0, 0},
      {UnaryKind::kNeg, 0, 0, 0, 0},
      {UnaryKind::kFloor, 0, 0, 0, 0},
      {UnaryKind::kCeil, 0, 0, 0, 0},
      {UnaryKind::kRound, 0, 0, 0, 0},
      {UnaryKind::kSquare, 0, 0, 0, 0},
      {UnaryKind::kAffine, 1.7f, -0.3f, 0, 0},
      {UnaryKind::kLog, 0, 0, 2, 0},
      {UnaryKind::kElu, 0, 0, 6, 0},
      {UnaryKind::kSign, 0, 0, 0, 0},
      {UnaryKind::kErf, 0, 0, 8, 1e-44f},
      {UnaryKind::kSoftsign, 0, 0, 0, 0},
  };
  // No function is taken that is not among them: one that nothing emits would go unnoticed.
  for (int kind = 0; kind < kernels::kUnaryKindCount; ++kind) {
    const auto unary = static_cast<UnaryKind>(kind);
    const bool compared =
        std::ranges::any_of(cases, [&](const Case& c) { return c.kind == unary; });
    EXPECT_TRUE(compared || !TailEmitter::Check(TailStage::Unary(unary)).ok())
        << kernels::UnaryName(unary);
  }
  for (const Case& c : cases) {
    Random random(static_cast<uint64_t>(c.kind) + 100);
    SCOPED_TRACE(std::string(kernels::UnaryName(c.kind)) + ", " + random.Trace());
    OpTester tester = PassThrough(Values(random, 203), 19, random);
    ASSERT_TRUE(tester.Infer().ok());
    tester.op.tail.stages.push_back(TailStage::Unary(c.kind, c.a, c.b));
    CompareUlps(tester, c.ulps, c.absolute, random);
  }
}

TEST(TailEmitterTest, BinaryStagesAgreeWithTheReference) {
  for (int kind = 0; kind < kernels::kBinaryKindCount; ++kind) {
    Random random(kind + 1);
    SCOPED_TRACE(random.Trace());
    const int32_t channels = static_cast<int32_t>(random.Int(1, 50)), rows = 61;
    OpTester tester = PassThrough(Values(random, rows), channels, random);
    ASSERT_TRUE(tester.Infer().ok());
    const int y = AddOperand(tester, {rows, channels}, random);
    tester.op.tail.stages.push_back(TailStage::Binary(
        static_cast<BinaryKind>(kind), {.input = y, .row_stride = channels, .channel_stride = 1}));
    CompareUlps(tester, 0, 0, random);
  }
}

TEST(TailEmitterTest, RefusesStagesWithoutEmitter) {
  EXPECT_EQ(TailEmitter::Check(TailStage::Unary(UnaryKind::kSin)).message(),
            "tail stage sin has no emitter");
  EXPECT_TRUE(TailEmitter::Check(TailStage::Unary(UnaryKind::kTanh)).ok());
}

}  // namespace
}  // namespace fuselite::jit::testing
