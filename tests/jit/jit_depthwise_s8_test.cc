#include "jit/depthwise/depthwise_quantized.h"
#include "jit/depthwise/depthwise_s8_emitter.h"
#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitDepthwiseInt8Test, EqualsTheReference) {
  CompareInt8Cases(200, kernels::testing::RandomQuantizedDepthwise);
}

TEST(JitDepthwiseInt8Test, ExtremeChannelsEqualTheReference) {
  CompareExtremeCases(200, false, kernels::testing::RandomQuantizedDepthwise);
}

// Filters of `rows` x `columns` over `image`, with any window.
OpTester AnyWindow(Random& random, const kernels::testing::QuantizedProductCases& cases,
                   const Shape& image, int32_t rows, int32_t columns) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<kernels::DepthwiseConv2DParams>();
  kernels::testing::RandomWindow(random, params);
  params.depth_multiplier = 1;
  params.activation = kernels::testing::RandomClampOrNone(random);
  const int32_t channels = image.dim(-1);
  const kernels::testing::QuantizedCase c =
      kernels::testing::RandomQuantizedCase(random, cases.types, 9);
  tester.Input(kernels::testing::Activations(c, random, image))
      .Constant(kernels::testing::QuantizedWeights(
          c, random, {1, rows, columns, channels},
          kernels::testing::WeightsQuantization(c, random, channels, 3, false)));
  kernels::testing::AddIntegerBias(c, tester, random, channels, 1);
  return tester.Output(c.type, c.output());
}

// Windows one pixel apart over few channels, whose neighbouring outputs are taken as one.
OpTester FewChannels(Random& random, const kernels::testing::QuantizedProductCases& cases,
                     int32_t channels, int32_t width) {
  OpTester few = AnyWindow(random, cases, {2, 11, width, channels}, 3, random.Pick({1, 3, 5}));
  few.params<kernels::DepthwiseConv2DParams>().stride_w = 1;
  return few;
}

OpTester AnyFewChannels(Random& random, const kernels::testing::QuantizedProductCases& cases) {
  const auto channels = static_cast<int32_t>(random.Int(2, 16));
  // Rows that they fill, and such whose last output shares some of them with the one before.
  const auto width =
      static_cast<int32_t>(random.Chance(0.5) ? 4 * random.Int(4, 12) : random.Int(16, 50));
  return FewChannels(random, cases, channels, width);
}

TEST(JitDepthwiseInt8Test, FewChannelsEqualTheReference) { CompareInt8Cases(200, AnyFewChannels); }

TEST(JitDepthwiseInt8Test, FewExtremeChannelsEqualTheReference) {
  CompareExtremeCases(100, false, AnyFewChannels);
}

// Rows of outputs that share vectors: all channels, or those that the last vectors have left, in
// images of fewer rows than are joined and more.
TEST(JitDepthwiseInt8Test, JoinedRowsEqualTheReference) {
  const auto make = [](Random& random, const kernels::testing::QuantizedProductCases& cases) {
    const int32_t channels = random.Pick({4, 8, 16, 20, 32, 68, 72, 80, 92, 96, 144});
    const auto height = static_cast<int32_t>(random.Int(9, 24));
    return AnyWindow(random, cases, {2, height, 15, channels}, random.Pick({1, 3, 5}), 3);
  };
  kernels::testing::CompareRandomly(
      200, [&](Random& random) { return make(random, kBytes); },
      [](OpTester& tester, Random& random) {
        if (random.Chance(0.3)) AddLookup(tester, random);
        CompareInt8(tester, random);
        return 1;
      });
}

TEST(JitDepthwiseInt8Test, TakesFiltersAndBiasesOfRunTime) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = FewChannels(random, kBytes, 20, 30);
    if (BitWidth(tester.op.inputs[1].type) < 8) continue;
    tester.AtRunTime(1).AtRunTime(2);
    ASSERT_TRUE(tester.Infer().ok());
    for (const Isa isa : EmittedIsas()) {
      EXPECT_TRUE(PlanDepthwiseConv2DInt8(tester.op, {.isa = isa}).ok()) << IsaName(isa);
    }
    CompareInt8(tester, random);
  }
}

// Images whose rows of outputs take several calls: of so many rows, or of so many bytes.
TEST(JitDepthwiseInt8Test, ManyRowsEqualTheReference) {
  const auto make = [](Random& random, const kernels::testing::QuantizedProductCases& cases) {
    const int32_t channels = random.Pick({5, 8, 32, 64, 80, 130});
    const auto height = static_cast<int32_t>(random.Int(40, 110));
    const auto width = static_cast<int32_t>(random.Chance(0.2) ? 130 : random.Int(4, 12));
    return AnyWindow(random, cases, {1, height, width, channels}, random.Pick({2, 3, 7}), 3);
  };
  CompareInt8Cases(60, make);
}

// Without dot products the last row's columns are multiplied in pairs: any number of them, at
// borders and in them.
TEST(JitDepthwiseInt8Test, OddFiltersEqualTheReference) {
  const auto make = [](Random& random, const kernels::testing::QuantizedProductCases& cases) {
    const auto channels = static_cast<int32_t>(random.Int(1, 40));
    const auto columns = static_cast<int32_t>(random.Int(2, 8));
    return AnyWindow(random, cases, {2, 15, 24, channels}, random.Pick({1, 3, 5}), columns);
  };
  CompareInt8Cases(300, make);
}

TEST(JitDepthwiseInt8Test, RowsAreJoinedWhereTheirChannelsFillHalfAVector) {
  DepthwiseS8Spec spec;
  spec.isa = Isa::kAvx512Vnni;
  spec.dot = true;
  spec.window = {.y = {.input = 8, .filter = 3, .output = 6}, .x = {.input = 8, .output = 8}};
  spec.tail.requantization.emplace();
  EXPECT_EQ(JoinRows(spec, {.width = 32, .channels = 24, .count = 1}).rows, 2);
  EXPECT_EQ(JoinRows(spec, {.width = 16, .channels = 16, .count = 1}).rows, 4);
  EXPECT_EQ(JoinRows(spec, {.width = 64, .channels = 64, .count = 1}).rows, 1);
  EXPECT_EQ(JoinRows(spec, {.width = 16, .channels = 7, .count = 1}).rows, 1);
  spec.isa = Isa::kAvxVnni;
  EXPECT_EQ(JoinRows(spec, {.width = 16, .channels = 16, .count = 1}).rows, 2);
  EXPECT_EQ(JoinRows(spec, {.width = 16, .channels = 12, .count = 1}).rows, 1);
  spec.tail.residuals.emplace_back();
  EXPECT_EQ(JoinRows(spec, {.width = 16, .channels = 16, .count = 1}).rows, 1);
}

// Neighbouring outputs fill a vector, though a row of them does not divide by their number.
TEST(JitDepthwiseInt8Test, RowsOfAnyLengthTakeNeighboursAsOne) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = FewChannels(random, kBytes, 8, 37);
    ASSERT_TRUE(tester.Infer().ok());
    for (const Isa isa : EmittedIsas()) {
      const auto plan = PlanDepthwiseConv2DInt8(tester.op, {.isa = isa});
      ASSERT_TRUE(plan.ok()) << plan.status().ToString();
      const std::string_view name = plan->kernel().name();
      EXPECT_EQ(name.find("x8 "), std::string_view::npos) << name;
    }
  }
}

TEST(JitGroupedInt8Test, EqualsTheReference) {
  CompareInt8Cases(200, kernels::testing::RandomQuantizedGroups);
}

TEST(JitGroupedInt8Test, ExtremeChannelsEqualTheReference) {
  CompareExtremeCases(100, false, kernels::testing::RandomQuantizedGroups);
}

// Small groups are not left to products, which would fill few lanes.
TEST(JitGroupedInt8Test, TakesSmallGroups) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    OpTester tester = kernels::testing::RandomQuantizedGroups(random, kBytes);
    ASSERT_TRUE(tester.Infer().ok());
    for (const Isa isa : EmittedIsas()) {
      const auto plan = PlanConv2DInt8(tester.op, {.isa = isa});
      ASSERT_TRUE(plan.ok()) << plan.status().ToString();
      EXPECT_TRUE(plan->kernel().name().starts_with("grouped ")) << plan->kernel().name();
    }
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
