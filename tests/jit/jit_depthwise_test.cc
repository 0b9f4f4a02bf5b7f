#include "jit/depthwise/depthwise.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitDepthwiseTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomDepthwiseConv2D(random, {});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const double depth = tester.op.inputs[1].shape.elements(1, 3);
    const auto bounds =
        kernels::testing::ProductBounds<kernels::DepthwiseConv2DParams>(tester, depth);
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

TEST(JitGroupedTest, AgreesWithTheReference) {
  int grouped = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomSmallGroups(random, {});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const double depth = tester.op.inputs[1].shape.elements(1, 4);
    CompareJit(tester, kernels::testing::ProductBounds<kernels::Conv2DParams>(tester, depth),
               random);
    if (HasFailure()) return;
    for (const Isa isa : EmittedIsas()) {
      const auto plan = PlanConv2D(tester.op, {.isa = isa});
      ASSERT_TRUE(plan.ok()) << plan.status().ToString();
      grouped += !plan->kernel().name().starts_with("conv");
    }
  }
  EXPECT_TRUE(EmittedIsas().empty() || grouped > 150);
}

}  // namespace
}  // namespace fuselite::jit::testing
