// Random convolutions and matrix products of integers: misaligned, pitched, with and without a
// bias, of every parameter. They serve the tests of Highway's kernels and those of emitted ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/heads_matmul/heads_matmul.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {

// What a kernel under test takes.
struct QuantizedProductCases {
  std::vector<DataType>
      types;           // of the activations; one that is named twice comes up twice as often
  bool groups = true;  // also depth multipliers
  // What BATCH_MATMUL may have: left sides that are broadcast, constant right ones, int32 outputs;
  // and left sides that are transposed.
  bool any_matmul = true, adjoint_left = true;
  // And how many rows and columns these have at least: fewer than 4 are not packed.
  int32_t min_lines = 1;
};

// What surrounds the weights of a random case.
struct QuantizedCase {
  DataType type = DataType::kInt8;
  float input_scale = 1, output_scale = 1;
  int32_t zero_point = 0, output_zero_point = 0;
  bool per_channel = false;

  int32_t type_min() const {
    if (type == DataType::kUInt8) return 0;
    return type == DataType::kInt16 ? -32768 : -128;
  }
  int32_t type_max() const {
    if (type == DataType::kUInt8) return 255;
    return type == DataType::kInt16 ? 32767 : 127;
  }
  Quantization input() const { return {{input_scale}, {zero_point}}; }
  Quantization output() const { return {{output_scale}, {output_zero_point}}; }
};

// Zero points at the ends of the type as often as inside; those of int16 are 0. Outputs of sums of
// `depth` products fill their range, in some cases leave it by far, or are nearly all alike.
inline QuantizedCase RandomQuantizedCase(Random& random, const std::vector<DataType>& types,
                                         int64_t depth) {
  QuantizedCase c;
  c.type = types[random.Int(0, static_cast<int64_t>(types.size()) - 1)];
  const auto zero_point = [&] {
    if (random.Chance(0.4)) return random.Pick({c.type_min(), c.type_max()});
    return static_cast<int32_t>(random.Int(c.type_min(), c.type_max()));
  };
  const bool wide = c.type == DataType::kInt16;
  c.zero_point = wide ? 0 : zero_point();
  c.output_zero_point = wide ? 0 : zero_point();
  c.per_channel = c.type != DataType::kUInt8 && random.Chance(0.6);
  c.input_scale = random.Float(0.002f, 0.1f) / (wide ? 256.0f : 1.0f);
  const float typical = c.input_scale * 0.01f * 60 * std::sqrt(static_cast<float>(depth));
  c.output_scale = typical * random.Pick({0.005f, 0.3f, 0.5f, 1.0f, 1.0f, 4.0f, 1000.0f});
  return c;
}

// `may_offset`: weights of int8 with one scale may have a zero point other than 0.
inline Quantization WeightsQuantization(const QuantizedCase& c, Random& random, int32_t channels,
                                        int axis, bool may_offset) {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  const bool is_uint8 = c.type == DataType::kUInt8;
  const int32_t low = is_uint8 ? 0 : -128;
  for (int32_t i = 0; i < (c.per_channel ? channels : 1); ++i) {
    scales.push_back(random.Float(0.005f, 0.02f));
    const bool offset = is_uint8 || (may_offset && !c.per_channel);
    zero_points.push_back(
        offset ? random.Pick<int32_t>({low, low + 255, is_uint8 ? 128 : 0, low + 100}) : 0);
  }
  return {.scales = std::move(scales), .zero_points = std::move(zero_points), .axis = axis};
}

// Every value of the type at random, at any element's address.
inline TestTensor AnyIntegers(Random& random, DataType type, Shape shape, Quantization quantization,
                              int64_t pitch = 0) {
  const size_t bytes = std::max(BitWidth(type) / 8, 1);
  TestTensor tensor(
      {.type = type, .shape = shape, .quantization = std::move(quantization), .row_pitch = pitch},
      bytes * static_cast<size_t>(random.Int(0, 5)));
  const double span = std::ldexp(1.0, BitWidth(type)),
               low = type == DataType::kUInt8 ? 0 : -span / 2;
  tensor.Fill(random, low, low + span - 1);
  return tensor;
}

// Activations, `width` elements wide, in some cases pitched.
inline TestTensor Activations(const QuantizedCase& c, Random& random, const Shape& shape) {
  return AnyIntegers(random, c.type, shape, c.input(), RandomPitch(random, shape.dim(-1)));
}

// int8 or, in some cases, int4; uint8 for uint8 activations.
inline TestTensor QuantizedWeights(const QuantizedCase& c, Random& random, const Shape& shape,
                                   Quantization quantization) {
  DataType type = c.type == DataType::kUInt8 ? DataType::kUInt8 : DataType::kInt8;
  if (type == DataType::kInt8 && random.Chance(0.2)) type = DataType::kInt4;
  return AnyIntegers(random, type, shape, std::move(quantization));
}

// Takes the place of the weights, in some cases of 16-bit activations: int16. Sums are 256 times as
// large.
inline bool BecomesShort(QuantizedCase& c, Random& random) {
  if (c.type != DataType::kInt16 || !random.Chance(0.3)) return false;
  c.output_scale *= 256;
  return true;
}

// Adds one in most cases: int32, or int64 of 16-bit activations, with the chance of `wide_share`.
inline void AddIntegerBias(const QuantizedCase& c, OpTester& tester, Random& random,
                           int32_t channels, double wide_share = 0.7) {
  if (random.Chance(0.2)) return;
  const bool wide = c.type == DataType::kInt16 && random.Chance(wide_share);
  const TestTensor bias({.type = wide ? DataType::kInt64 : DataType::kInt32,
                         .shape = {channels},
                         .quantization = BiasQuantization(tester.op)},
                        wide ? 8 : 4);
  bias.Fill(random, -5000, 5000);
  tester.Constant(bias);
}

inline Activation RandomClampOrNone(Random& random) {
  return random.Pick({Activation::kNone, Activation::kNone, Activation::kRelu, Activation::kRelu6,
                      Activation::kReluN1To1});
}

// `groups` of `group_in` inputs; `out` outputs in all.
inline OpTester RandomQuantizedConv2DOf(Random& random, const QuantizedProductCases& cases,
                                        int32_t groups, int32_t group_in, int32_t out) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  RandomWindow(random, params);
  params.activation = RandomClampOrNone(random);
  auto filter_h = static_cast<int32_t>(random.Int(1, 4));
  auto filter_w = static_cast<int32_t>(random.Int(1, 4));
  if (random.Chance(0.4)) {
    filter_h = filter_w = params.stride_h = params.stride_w = 1;  // rows of the input, uncopied
    if (random.Chance(0.7)) params.extra_padding = {};
  }
  const auto images = static_cast<int32_t>(random.Int(1, 3));
  const auto h = static_cast<int32_t>(random.Int(8, 17));
  auto w = static_cast<int32_t>(random.Int(8, 17));
  if (random.Chance(0.15)) MakeColumn(random, params, filter_w, w);
  if (w > 1 && random.Chance(0.2)) MakeFarDilated(random, params, filter_h, filter_w);
  const Shape image = {images, h, w, group_in * groups};
  const QuantizedCase c =
      RandomQuantizedCase(random, cases.types, int64_t{filter_h} * filter_w * group_in);
  tester.Input(Activations(c, random, image))
      .Constant(QuantizedWeights(c, random, {out, filter_h, filter_w, group_in},
                                 WeightsQuantization(c, random, out, 0, false)));
  AddIntegerBias(c, tester, random, out);
  return tester.Output(c.type, c.output());
}

inline OpTester RandomQuantizedConv2D(Random& random, const QuantizedProductCases& cases) {
  const int32_t groups = cases.groups ? random.Pick({1, 1, 1, 1, 2, 5}) : 1;
  const int32_t group_in = random.Pick({1, 2, 3, 4, 5, 8, 16, 17, 31, 48, 100});
  const auto out = groups * static_cast<int32_t>(random.Int(1, 150 / groups));
  return RandomQuantizedConv2DOf(random, cases, groups, group_in, out);
}

// Groups of 2, 4 or 8 inputs and as many outputs.
inline OpTester RandomQuantizedGroups(Random& random, const QuantizedProductCases& cases) {
  const int32_t group = random.Pick({2, 4, 8});
  const auto groups = static_cast<int32_t>(random.Int(2, 150 / group));
  return RandomQuantizedConv2DOf(random, cases, groups, group, groups * group);
}

inline OpTester RandomQuantizedDepthwise(Random& random, const QuantizedProductCases& cases) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  RandomWindow(random, params);
  params.activation = RandomClampOrNone(random);
  params.depth_multiplier = cases.groups ? random.Pick({1, 1, 1, 2, 3, 4, 12}) : 1;
  const auto channels =
      static_cast<int32_t>(random.Chance(0.1) ? 1 : random.Int(1, 200 / params.depth_multiplier));
  const int32_t out = channels * params.depth_multiplier;
  auto filter_h = static_cast<int32_t>(random.Int(1, 6));
  auto filter_w = static_cast<int32_t>(random.Int(1, 6));
  Shape image = {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(11, 17)),
                 static_cast<int32_t>(random.Int(11, 30)), channels};
  // Filters as those of audio have them, up to 20 taps long, which a dilation of 2 makes 39; images
  // of one column; and long ones of one line, which threads share in parts.
  const auto length = static_cast<int32_t>(random.Int(7, 20));
  const auto line = static_cast<int32_t>(random.Int(60, 400));
  switch (random.Int(0, 11)) {
    case 0:
      filter_h = length, image = {1, static_cast<int32_t>(random.Int(39, 45)), 11, channels};
      break;
    case 1:
      filter_w = length, image = {1, 11, static_cast<int32_t>(random.Int(39, 90)), channels};
      break;
    case 2:
      filter_h = length, filter_w = 1;
      image = {2, static_cast<int32_t>(random.Int(39, 45)), 1, channels};
      break;
    case 3: filter_h = 1, image = {image[0], 1, line, channels}; break;
    case 4: filter_w = 1, image = {image[0], line, 1, channels}; break;
    default: break;
  }
  const QuantizedCase c = RandomQuantizedCase(random, cases.types, int64_t{filter_h} * filter_w);
  tester.Input(Activations(c, random, image))
      .Constant(QuantizedWeights(c, random, {1, filter_h, filter_w, out},
                                 WeightsQuantization(c, random, out, 3, false)));
  AddIntegerBias(c, tester, random, out, 1);
  return tester.Output(c.type, c.output());
}

inline OpTester RandomQuantizedFullyConnected(Random& random, const QuantizedProductCases& cases) {
  OpTester tester("FULLY_CONNECTED");
  tester.params<FullyConnectedParams>().activation = RandomClampOrNone(random);
  const auto rows = static_cast<int32_t>(random.Chance(0.4) ? 1 : random.Int(2, 40));
  // Beyond 510 terms, sums of 16-bit activations are put together.
  const auto depth = static_cast<int32_t>(random.Int(1, random.Chance(0.2) ? 1500 : 300));
  const auto units = static_cast<int32_t>(random.Int(1, 300));
  QuantizedCase c = RandomQuantizedCase(random, cases.types, depth);
  const bool shorts = BecomesShort(c, random);
  Quantization weights = WeightsQuantization(c, random, units, 0, !shorts);
  const Shape shape = {units, depth};
  tester.Input(Activations(c, random, {rows, depth}))
      .Constant(shorts ? AnyIntegers(random, DataType::kInt16, shape, std::move(weights))
                       : QuantizedWeights(c, random, shape, std::move(weights)));
  AddIntegerBias(c, tester, random, units);
  if (tester.op.has_input(2)) {
    tester.params<FullyConnectedParams>().quantized_bias_type = tester.op.inputs[2].type;
  }
  return tester.Output(c.type, c.output());
}

inline OpTester RandomQuantizedBatchMatMul(Random& random, const QuantizedProductCases& cases) {
  OpTester tester("BATCH_MATMUL");
  auto& params = tester.params<BatchMatMulParams>();
  params.adj_x = cases.adjoint_left && random.Chance(0.2);
  params.adj_y = random.Chance(0.5);
  const auto rows = static_cast<int32_t>(random.Int(cases.min_lines, 30));
  const auto depth = static_cast<int32_t>(random.Int(1, 100));
  // More than the 256 products of a matrix that are left to the reference (RequireWorthPacking).
  const int32_t fewest = std::max(256 / (rows * depth) + 1, cases.min_lines);
  const auto columns = static_cast<int32_t>(random.Int(fewest, 300));
  const auto outer = static_cast<int32_t>(random.Int(1, 3));
  const auto inner = static_cast<int32_t>(random.Int(1, 3));
  const int32_t x_inner = !cases.any_matmul || random.Chance(0.7) ? inner : 1;
  const int32_t y_outer = random.Chance(0.7) ? outer : 1;
  QuantizedCase c = RandomQuantizedCase(random, cases.types, depth);
  c.per_channel = false;
  const bool shorts = BecomesShort(c, random);
  const DataType right_type = shorts ? DataType::kInt16 : DataType::kInt8;
  Quantization right = WeightsQuantization(c, random, 1, 0, !shorts);
  // int32 outputs have no zero points anywhere.
  const bool sums = cases.any_matmul && c.type == DataType::kInt8 && random.Chance(0.2);
  if (sums) c.zero_point = 0, right.zero_points = {0};
  const auto matrix = [](int32_t a, int32_t b, int32_t height, int32_t width, bool adjoint) {
    return adjoint ? Shape{a, b, width, height} : Shape{a, b, height, width};
  };
  tester.Input(Activations(c, random, matrix(outer, x_inner, rows, depth, params.adj_x)));
  const Shape shape = matrix(y_outer, inner, depth, columns, params.adj_y);
  if (cases.any_matmul && random.Chance(0.3)) {
    tester.Constant(AnyIntegers(random, right_type, shape, right));
  } else {
    tester.Input(AnyIntegers(random, right_type, shape, right, RandomPitch(random, shape.dim(-1))));
  }
  return tester.Output(sums ? DataType::kInt32 : c.type, c.output());
}

// Of int8 alone. Rows of several dimensions, and heads of which one may be all there is.
inline OpTester RandomQuantizedHeadsMatMul(Random& random) {
  OpTester tester("FUSELITE_HEADS_MATMUL");
  auto& params = tester.params<HeadsMatMulParams>();
  params.heads = random.Pick({1, 2, 3, 5});
  params.adj_y = random.Chance(0.5);
  const auto depth = static_cast<int32_t>(random.Int(1, 100));
  const auto columns = static_cast<int32_t>(random.Int(1, random.Chance(0.4) ? 200 : 40));
  QuantizedCase c = RandomQuantizedCase(random, {DataType::kInt8}, depth);
  c.per_channel = false;
  const int32_t height = params.adj_y ? columns : depth, width = params.adj_y ? depth : columns;
  const Shape shape = {1, height, params.heads * width};
  tester.Input(Activations(
      c, random,
      {static_cast<int32_t>(random.Int(1, 2)),
       static_cast<int32_t>(random.Int(1, random.Chance(0.4) ? 90 : 30)), params.heads * depth}));
  tester.Input(AnyIntegers(random, DataType::kInt8, shape,
                           WeightsQuantization(c, random, 1, 0, true),
                           RandomPitch(random, shape.dim(-1))));
  return tester.Output(c.type, c.output());
}

}  // namespace fuselite::kernels::testing
