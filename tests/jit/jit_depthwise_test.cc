#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Activation;
using kernels::DepthwiseConv2DParams;
using kernels::Padding;

constexpr DataType kF32 = DataType::kFloat32;

OpTester RandomDepthwise(Random& random) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 3);
  params.stride_w = random.Int(1, 3);
  params.dilation_h = random.Int(1, 3);
  params.dilation_w = random.Int(1, 3);
  params.depth_multiplier = 1;
  params.activation = random.Pick({Activation::kNone, Activation::kRelu6, Activation::kTanh});
  if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
  const auto channels = static_cast<int32_t>(random.Int(1, 70));
  const auto filter_h = static_cast<int32_t>(random.Int(1, 5));
  const auto filter_w = static_cast<int32_t>(random.Pick({1, 2, 3, 5, 7}));
  // Images smaller than the reach of the filter too, where SAME pads them up.
  const int32_t least = params.padding == Padding::kSame ? 1 : 19;
  const auto h = static_cast<int32_t>(random.Int(least, 25));
  const auto w = static_cast<int32_t>(random.Int(least, 35));
  const auto n = static_cast<int32_t>(random.Int(1, 3));
  const TestTensor input({.type = kF32,
                          .shape = {n, h, w, channels},
                          .row_pitch = random.Chance(0.3) ? channels + random.Int(1, 9) : 0},
                         4 * random.Int(0, 3));
  const TestTensor filter({.type = kF32, .shape = {1, filter_h, filter_w, channels}},
                          4 * random.Int(0, 3));
  input.Fill(random, -1, 1);
  filter.Fill(random, -1, 1);
  tester.Input(input).Constant(filter);
  if (random.Chance(0.7)) {
    const TestTensor bias({.type = kF32, .shape = {channels}}, 4);
    bias.Fill(random, -1, 1);
    tester.Constant(bias);
  }
  return tester;
}

TEST(JitDepthwiseTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomDepthwise(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    if (random.Chance(0.3)) {
      tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
    }
    const Shape& filter = tester.op.inputs[1].shape;
    const auto bounds =
        kernels::testing::Bounds(tester, filter.elements(1, 3), [](OpTester& plain) {
          plain.params<DepthwiseConv2DParams>().activation = Activation::kNone;
        });
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
