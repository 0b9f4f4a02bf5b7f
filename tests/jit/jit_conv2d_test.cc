#include "tests/jit/jit_cases.h"
#include "tests/kernels/conv3d_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

// A random tail and pitch; the emitted kernel against the reference.
template <class Params>
void Compare(OpTester& tester, double depth, Random& random) {
  AddTail(tester, random);
  kernels::testing::PitchOutput(tester, random);
  CompareJit(tester, kernels::testing::ProductBounds<Params>(tester, depth), random);
}

TEST(JitConv2DTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomConv2D(random, {});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    const Shape& out = tester.op.outputs[0].shape;
    if (out.elements(0, 3) < 4) continue;  // too few pixels to pack run-time filters for
    Compare<kernels::Conv2DParams>(tester, tester.op.inputs[1].shape.elements(1, 4), random);
    if (HasFailure()) return;
  }
}

TEST(JitConv2DTest, DepthwiseOfOneChannelAgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("DEPTHWISE_CONV_2D");
    auto& params = tester.params<kernels::DepthwiseConv2DParams>();
    kernels::testing::RandomWindow(random, params);
    params.depth_multiplier = static_cast<int32_t>(random.Int(2, 70));
    tester.Input(kernels::testing::RandomFloats(random, {2, 11, 13, 1}));
    const Shape filter = {1, static_cast<int32_t>(random.Int(1, 4)),
                          static_cast<int32_t>(random.Int(1, 4)), params.depth_multiplier};
    kernels::testing::AddWeights(tester, random, filter, params.depth_multiplier,
                                 {.run_time_weights = false});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    Compare<kernels::DepthwiseConv2DParams>(tester, filter.elements(1, 3), random);
    if (HasFailure()) return;
  }
}

TEST(JitTransposeConvTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomTransposeConv(random, 3);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    Compare<kernels::TransposeConvParams>(tester, tester.op.inputs[1].shape.elements(1, 4), random);
    if (HasFailure()) return;
  }
}

TEST(JitConv3DTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    // Taps that meet no input give products without terms, which are Highway's.
    OpTester tester = kernels::testing::RandomConv3D(random, seed % 2 == 0, 3);
    ASSERT_TRUE(tester.Infer().ok());
    kernels::testing::AddRandomTail(tester, random);
    const auto bounds = kernels::testing::ProductBounds<kernels::Conv3DParams>(
        tester, kernels::testing::Conv3DDepth(tester));
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
