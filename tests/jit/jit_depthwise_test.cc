#include "tests/jit/jit_cases.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitDepthwiseTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomDepthwiseConv2D(
        random, {.groups = false, .run_time_weights = false});
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

}  // namespace
}  // namespace fuselite::jit::testing
