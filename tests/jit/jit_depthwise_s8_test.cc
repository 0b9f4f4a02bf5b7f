#include "jit/depthwise/depthwise_quantized.h"
#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitDepthwiseInt8Test, EqualsTheReference) {
  CompareInt8Cases(200, kernels::testing::RandomQuantizedDepthwise);
}

TEST(JitDepthwiseInt8Test, ExtremeChannelsEqualTheReference) {
  CompareExtremeCases(200, false, kernels::testing::RandomQuantizedDepthwise);
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
