#include "kernels/conv2d/conv2d.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Activation;
using kernels::Conv2DParams;
using kernels::Padding;

constexpr DataType kF32 = DataType::kFloat32;

OpTester RandomConv(Random& random) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 3);
  params.stride_w = random.Int(1, 3);
  params.dilation_h = random.Int(1, 2);
  params.dilation_w = random.Int(1, 2);
  params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6,
                                   Activation::kReluN1To1, Activation::kTanh});
  if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
  const int32_t channels_in = random.Pick({1, 2, 3, 5, 8, 16, 17, 31, 48});
  const auto channels_out = static_cast<int32_t>(random.Int(1, 70));
  auto filter_h = static_cast<int32_t>(random.Int(1, 4));
  auto filter_w = static_cast<int32_t>(random.Int(1, 4));
  if (random.Chance(0.4)) {
    filter_h = filter_w = params.stride_h = params.stride_w = 1;
    if (random.Chance(0.7)) params.extra_padding = {};
  }
  const auto h = static_cast<int32_t>(random.Int(8, 17));
  const auto w = static_cast<int32_t>(random.Int(8, 17));
  const auto n = static_cast<int32_t>(random.Int(1, 3));
  const TestTensor input({.type = kF32,
                          .shape = {n, h, w, channels_in},
                          .row_pitch = random.Chance(0.3) ? channels_in + random.Int(1, 9) : 0},
                         4 * random.Int(0, 3));
  const TestTensor filter({.type = kF32, .shape = {channels_out, filter_h, filter_w, channels_in}},
                          4 * random.Int(0, 3));
  input.Fill(random, -1, 1);
  filter.Fill(random, -1, 1);
  tester.Input(input).Constant(filter);
  if (random.Chance(0.7)) {
    const TestTensor bias({.type = kF32, .shape = {channels_out}}, 4);
    bias.Fill(random, -1, 1);
    tester.Constant(bias);
  }
  return tester;
}

TEST(JitConv2DTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomConv(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    if (random.Chance(0.3)) {
      tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
    }
    const Shape& filter = tester.op.inputs[1].shape;
    const auto bounds = kernels::testing::Bounds(
        tester, filter.elements(1, 4),
        [](OpTester& plain) { plain.params<Conv2DParams>().activation = Activation::kNone; });
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
