#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Activation;
using kernels::DepthwiseConv2DParams;
using kernels::Padding;

OpTester RandomDepthwise(Random& random) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 3);
  params.stride_w = random.Int(1, 3);
  params.dilation_h = random.Chance(0.8) ? 1 : 2;
  params.dilation_w = random.Chance(0.8) ? 1 : 2;
  params.depth_multiplier = 1;
  params.activation = random.Pick({Activation::kNone, Activation::kNone, Activation::kRelu,
                                   Activation::kRelu6, Activation::kReluN1To1});
  if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
  const auto channels = static_cast<int32_t>(random.Int(1, 200));
  const auto filter_h = static_cast<int32_t>(random.Int(1, 6));
  const auto filter_w = static_cast<int32_t>(random.Int(1, 6));
  const Shape image = {static_cast<int32_t>(random.Int(1, 2)),
                       static_cast<int32_t>(random.Int(11, 17)),
                       static_cast<int32_t>(random.Int(11, 30)), channels};
  const Int8Case c = RandomInt8(random, int64_t{filter_h} * filter_w);
  tester
      .Input(Int8Tensor(c, random, image, {{c.input_scale}, {c.zero_point}},
                        random.Chance(0.3) ? channels + random.Int(1, 9) : 0))
      .Constant(Int8Weights(c, random, {1, filter_h, filter_w, channels},
                            WeightsQuantization(c, random, channels, 3, false)));
  AddInt32Bias(tester, random, channels);
  tester.Output(c.type, {{c.output_scale}, {c.output_zero_point}});
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  AddInt8Tail(tester, c, random);
  if (random.Chance(0.3)) {
    tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
  }
  return tester;
}

TEST(JitDepthwiseInt8Test, EqualsTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    CompareInt8(RandomDepthwise(random), random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
