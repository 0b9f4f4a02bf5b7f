// Random transposed convolutions.
#pragma once

#include <vector>

#include "kernels/transpose_conv/transpose_conv.h"
#include "tests/kernels/op_tester.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {

inline OpTester TransposeConvOf(const std::vector<int32_t>& output, const TestTensor& filter,
                                const TestTensor& input, Padding padding, int32_t stride_h,
                                int32_t stride_w) {
  OpTester tester("TRANSPOSE_CONV");
  auto& params = tester.params<TransposeConvParams>();
  params.padding = padding;
  params.stride_h = stride_h;
  params.stride_w = stride_w;
  tester.Constant(TestTensor::Of<int32_t>(DataType::kInt32, {4}, output));
  tester.Constant(filter);
  tester.Input(input);
  return tester;
}

// Sizes of an image, of the smaller one that it comes from, and of the filter between them.
struct TransposeConvSizes {
  Padding padding;
  int32_t stride_h, stride_w;
  Shape output, input, filter;

  TransposeConvSizes(Random& random, int32_t max_width, int32_t max_in, int32_t max_out,
                     int32_t min_filter = 1)
      : padding(random.Pick({Padding::kSame, Padding::kValid})),
        stride_h(static_cast<int32_t>(random.Int(1, 3))),
        stride_w(static_cast<int32_t>(random.Int(1, 3))) {
    const auto size = [&](int64_t low, int64_t high) {
      return static_cast<int32_t>(random.Int(low, high));
    };
    const int32_t out = size(1, max_out), in = size(1, max_in), batch = size(1, 2);
    output = {batch, size(5, 14), size(5, max_width), out};
    filter = {out, size(min_filter, 5), size(min_filter, 5), in};
    if (min_filter == 1 && random.Chance(0.15)) {  // one column
      output.set(2, 1);
      filter.set(2, 1);
      stride_w = 1;
    }
    Result<Window> window = ResolveWindow({.input_h = output[1],
                                           .input_w = output[2],
                                           .filter_h = filter[1],
                                           .filter_w = filter[2],
                                           .stride_h = stride_h,
                                           .stride_w = stride_w,
                                           .padding = padding});
    EXPECT_TRUE(window.ok());
    input = {batch, window->y.output, window->x.output, in};
  }
  OpTester Tester(const TestTensor& filter_values, const TestTensor& input_values) const {
    return TransposeConvOf({output[0], output[1], output[2], output[3]}, filter_values,
                           input_values, padding, stride_h, stride_w);
  }
};

// Filters have at least `min_filter` taps along each axis; strides are up to 3.
inline OpTester RandomTransposeConv(Random& random, int32_t min_filter = 1) {
  const TransposeConvSizes sizes(random, 30, 20, 40, min_filter);
  const TestTensor filter({.type = DataType::kFloat32, .shape = sizes.filter});
  filter.Fill(random, -1, 1);
  const TestTensor input =
      RandomFloats(random, sizes.input, RandomPitch(random, sizes.input.dim(-1)));
  OpTester tester = sizes.Tester(filter, input);
  tester.params<TransposeConvParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu, Activation::kTanh});
  if (random.Chance(0.7)) tester.Input(RandomFloats(random, {sizes.output.dim(-1)}));
  return tester;
}

// The case is of one of `types`. What is constant may as well be known at run time only.
inline OpTester RandomQuantizedTransposeConv(Random& random, const std::vector<DataType>& types,
                                             int32_t min_filter = 1) {
  const DataType type = types[random.Int(0, static_cast<int64_t>(types.size()) - 1)];
  // Phases of more than 510 terms of 16 bits are put together.
  const bool wide = type == DataType::kInt16;
  const TransposeConvSizes sizes(random, 60, wide && random.Chance(0.3) ? 200 : 40, 50, min_filter);
  const int32_t in = sizes.input.dim(-1), out = sizes.output.dim(-1);
  const bool is_signed = type != DataType::kUInt8;
  const int64_t low = type == DataType::kInt8 ? -128 : 0, high = wide ? 0 : low + 255;
  const TestTensor input =
      RandomTensor(random,
                   {.type = type,
                    .shape = sizes.input,
                    .quantization = RandomQuantization(random, 1, false, low, high),
                    .row_pitch = RandomPitch(random, in)},
                   random.Int(0, 3) * BitWidth(type) / 8);
  const TestTensor filter = RandomTensor(
      random, {.type = is_signed ? DataType::kInt8 : DataType::kUInt8,
               .shape = sizes.filter,
               .quantization = is_signed ? RandomQuantization(random, out, random.Chance(0.7), 0, 0)
                                         : RandomQuantization(random, 1, false, 0, 255)});
  OpTester tester = sizes.Tester(filter, input);
  tester.params<TransposeConvParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  if (random.Chance(0.7)) {
    const DataType bias = wide && random.Chance(0.7) ? DataType::kInt64 : DataType::kInt32;
    tester.Constant(RandomTensor(random, {.type = bias, .shape = {out}}, BitWidth(bias) / 8));
  }
  Quantization output = RandomQuantization(random, 1, false, low, high);
  output.scales = {output.scale() * (wide ? 1000 : 10)};
  tester.Output(type, output);
  return tester;
}

// Filters have at least `min_filter` taps along each axis.
inline OpTester RandomHybridTransposeConv(Random& random, int32_t min_filter = 1) {
  const TransposeConvSizes sizes(random, 60, 40, 50, min_filter);
  const int32_t in = sizes.input.dim(-1), out = sizes.output.dim(-1);
  const TestTensor filter =
      RandomTensor(random, {.type = DataType::kInt8,
                            .shape = sizes.filter,
                            .quantization = RandomQuantization(random, out, true, 0, 0)});
  const TestTensor input = RandomFloats(random, sizes.input, RandomPitch(random, in));
  if (random.Chance(0.1)) input.Fill(random, 0, 0);
  OpTester tester = sizes.Tester(filter, input);
  tester.params<TransposeConvParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  if (random.Chance(0.7)) tester.Input(RandomFloats(random, {out}));
  return tester;
}

}  // namespace fuselite::kernels::testing
