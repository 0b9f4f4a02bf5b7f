#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/quantization.h"
#include "kernels/transpose_conv/transpose_conv.h"
#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Activation;
using kernels::BatchMatMulParams;
using kernels::Conv2DParams;
using kernels::FullyConnectedParams;
using kernels::Padding;
using kernels::TransposeConvParams;

Activation RandomActivation(Random& random) {
  return random.Pick({Activation::kNone, Activation::kNone, Activation::kRelu, Activation::kRelu6,
                      Activation::kReluN1To1});
}

OpTester RandomConv(Random& random) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 3);
  params.stride_w = random.Int(1, 3);
  params.dilation_h = random.Int(1, 2);
  params.dilation_w = random.Int(1, 2);
  params.activation = RandomActivation(random);
  if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
  const int32_t channels_in = random.Pick({1, 2, 3, 4, 5, 8, 16, 17, 31, 48, 100});
  const auto channels_out = static_cast<int32_t>(random.Int(1, 150));
  auto filter_h = static_cast<int32_t>(random.Int(1, 4));
  auto filter_w = static_cast<int32_t>(random.Int(1, 4));
  if (random.Chance(0.4)) {
    filter_h = filter_w = params.stride_h = params.stride_w = 1;
    if (random.Chance(0.7)) params.extra_padding = {};
  }
  const Shape image = {static_cast<int32_t>(random.Int(1, 3)),
                       static_cast<int32_t>(random.Int(8, 17)),
                       static_cast<int32_t>(random.Int(8, 17)), channels_in};
  const Int8Case c = RandomInt8(random, int64_t{filter_h} * filter_w * channels_in);
  tester
      .Input(Int8Tensor(c, random, image, {{c.input_scale}, {c.zero_point}},
                        random.Chance(0.3) ? channels_in + random.Int(1, 9) : 0))
      .Constant(Int8Weights(c, random, {channels_out, filter_h, filter_w, channels_in},
                            WeightsQuantization(c, random, channels_out, 0, false)));
  AddInt32Bias(tester, random, channels_out);
  tester.Output(c.type, {{c.output_scale}, {c.output_zero_point}});
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  AddInt8Tail(tester, c, random);
  if (random.Chance(0.3)) {
    tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
  }
  return tester;
}

TEST(JitProductInt8Test, ConvolutionsEqualTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    CompareInt8(RandomConv(random), random);
    if (HasFailure()) return;
  }
}

TEST(JitProductInt8Test, FullyConnectedEqualsTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FULLY_CONNECTED");
    tester.params<FullyConnectedParams>().activation = RandomActivation(random);
    const auto rows = static_cast<int32_t>(random.Chance(0.4) ? 1 : random.Int(2, 40));
    const auto depth = static_cast<int32_t>(random.Int(1, 300));
    const auto units = static_cast<int32_t>(random.Int(1, 300));
    const Int8Case c = RandomInt8(random, depth);
    tester
        .Input(Int8Tensor(c, random, {rows, depth}, {{c.input_scale}, {c.zero_point}},
                          random.Chance(0.3) ? depth + random.Int(1, 9) : 0))
        .Constant(
            Int8Weights(c, random, {units, depth}, WeightsQuantization(c, random, units, 0, true)));
    AddInt32Bias(tester, random, units);
    tester.Output(c.type, {{c.output_scale}, {c.output_zero_point}});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddInt8Tail(tester, c, random);
    CompareInt8(tester, random);
    if (HasFailure()) return;
  }
}

TEST(JitProductInt8Test, BatchMatMulEqualsTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("BATCH_MATMUL");
    const bool adj_y = random.Chance(0.5);
    tester.params<BatchMatMulParams>().adj_y = adj_y;
    const auto rows = static_cast<int32_t>(random.Int(1, 30));
    const auto depth = static_cast<int32_t>(random.Int(1, 100));
    const auto columns = static_cast<int32_t>(random.Int(1, 150));
    const auto batch = static_cast<int32_t>(random.Int(1, 3));
    Int8Case c = RandomInt8(random, depth);
    c.type = DataType::kInt8;
    c.zero_point = std::clamp(c.zero_point, -128, 127);
    c.output_zero_point = std::clamp(c.output_zero_point, -128, 127);
    c.per_channel = false;
    const auto pitch = [&](int32_t width) { return random.Chance(0.3) ? width + 5 : 0; };
    const Shape right = {random.Chance(0.3) ? 1 : batch, 2, adj_y ? columns : depth,
                         adj_y ? depth : columns};
    tester
        .Input(Int8Tensor(c, random, {batch, 2, rows, depth}, {{c.input_scale}, {c.zero_point}},
                          pitch(depth)))
        .Input(Int8Tensor(c, random, right, WeightsQuantization(c, random, 1, 0, true),
                          pitch(right[3])))
        .Output(c.type, {{c.output_scale}, {c.output_zero_point}});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddInt8Tail(tester, c, random);
    CompareInt8(tester, random);
    if (HasFailure()) return;
  }
}

TEST(JitProductInt8Test, TransposedConvolutionsEqualTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("TRANSPOSE_CONV");
    auto& params = tester.params<TransposeConvParams>();
    params.padding = random.Pick({Padding::kSame, Padding::kValid});
    params.stride_h = random.Int(1, 3);
    params.stride_w = random.Int(1, 3);
    params.activation = RandomActivation(random);
    const auto filter_h = static_cast<int32_t>(random.Int(params.stride_h, 5));
    const auto filter_w = static_cast<int32_t>(random.Int(params.stride_w, 5));
    const auto channels_in = static_cast<int32_t>(random.Int(1, 40));
    const auto channels_out = static_cast<int32_t>(random.Int(1, 80));
    const Shape in = {static_cast<int32_t>(random.Int(1, 2)),
                      static_cast<int32_t>(random.Int(1, 9)),
                      static_cast<int32_t>(random.Int(1, 9)), channels_in};
    const auto size = [&](int32_t n, int32_t stride, int32_t filter) {
      if (params.padding == Padding::kValid) return (n - 1) * stride + filter;
      return n * stride - static_cast<int32_t>(random.Int(0, stride - 1));
    };
    const std::vector<int32_t> out = {in[0], size(in[1], params.stride_h, filter_h),
                                      size(in[2], params.stride_w, filter_w), channels_out};
    Int8Case c = RandomInt8(random, int64_t{filter_h} * filter_w * channels_in);
    // What is requantized in registers.
    c.output_scale = std::clamp(c.output_scale, 0.1f * c.input_scale, 100 * c.input_scale);
    Quantization weights = WeightsQuantization(c, random, channels_out, 0, false);
    if (c.type == DataType::kUInt8) weights.zero_points = {128};
    tester.Constant(TestTensor::Of(DataType::kInt32, {4}, out))
        .Constant(Int8Tensor(c, random, {channels_out, filter_h, filter_w, channels_in}, weights))
        .Input(Int8Tensor(c, random, in, {{c.input_scale}, {c.zero_point}},
                          random.Chance(0.3) ? channels_in + random.Int(1, 9) : 0));
    AddInt32Bias(tester, random, channels_out);
    tester.Output(c.type, {{c.output_scale}, {c.output_zero_point}});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    if (random.Chance(0.4)) AddLookup(tester, random);
    if (random.Chance(0.3)) tester.op.outputs[0].row_pitch = channels_out + random.Int(1, 9);
    CompareInt8(tester, random);
    if (HasFailure()) return;
  }
}

// The formula of jit/integer_tail_emitter.h, in scalar code, against the two roundings.
TEST(JitProductInt8Test, OneShiftRoundsAsTwo) {
  Random random(1);
  for (int i = 0; i < 1000000; ++i) {
    const auto multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
    const auto e = static_cast<int32_t>(random.Int(0, 20));
    auto sum = static_cast<int32_t>(random.Int(-(1 << 28) + 1, (1 << 28) - 1));
    sum >>= random.Int(0, 27);
    if (e > 0 && random.Chance(0.5)) {  // near a tie of the second rounding
      const int64_t tie = (random.Int(-200, 200) * 2 + 1) << (e - 1);
      const int64_t near = (tie << 31) / multiplier + random.Int(-2, 2);
      if (std::abs(near) < 1 << 28) sum = static_cast<int32_t>(near);
    }
    const auto zero_point = static_cast<int32_t>(random.Int(-128, 255));
    const auto y = static_cast<int32_t>((int64_t{sum} * 4 * multiplier) >> 32);
    const int32_t constant = 1 + (e > 0 ? 1 << e : 0) + zero_point * (1 << (e + 1));
    const int32_t once = (y + constant - (sum < 0 && e > 0 ? 2 : 0)) >> (e + 1);
    ASSERT_EQ(kernels::MultiplyByQuantizedMultiplier(sum, multiplier, -e) + zero_point, once)
        << sum << " * " << multiplier << " >> " << e;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
