// Random float32 convolutions and matrix products: misaligned, pitched, with and without a bias, of
// every parameter. They serve the tests of Highway's kernels and those of emitted ones.
#pragma once

#include <utility>

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/fully_connected/fully_connected.h"
#include "tests/kernels/float_cases.h"

namespace fuselite::kernels::testing {

// What a kernel under test takes: emitted depthwise ones pack their weights when they are built.
struct ProductCases {
  bool groups = true;  // also depth multipliers
  bool run_time_weights = true;
};

inline TestTensor RandomFloats(Random& random, Shape shape, int64_t pitch = 0) {
  TestTensor tensor({.type = DataType::kFloat32, .shape = shape, .row_pitch = pitch},
                    4 * random.Int(0, 3));
  tensor.Fill(random, -1, 1);
  return tensor;
}

// Appends the weights and, in most cases, a bias of `channels`: constants or run-time values.
inline void AddWeights(OpTester& tester, Random& random, Shape shape, int32_t channels,
                       const ProductCases& cases) {
  const bool constant = !cases.run_time_weights || random.Chance(0.7);
  const TestTensor weights = RandomFloats(random, shape);
  constant ? tester.Constant(weights) : tester.Input(weights);
  if (!random.Chance(0.7)) return;
  const TestTensor bias = RandomFloats(random, {channels});
  random.Chance(0.5) || !cases.run_time_weights ? tester.Constant(bias) : tester.Input(bias);
}

template <class Params>
void RandomWindow(Random& random, Params& params) {
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = static_cast<int32_t>(random.Int(1, 3));
  params.stride_w = static_cast<int32_t>(random.Int(1, 3));
  params.dilation_h = random.Pick({1, 1, 2});
  params.dilation_w = random.Pick({1, 1, 2});
  params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6,
                                   Activation::kReluN1To1, Activation::kTanh});
  if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
}

// Makes an image of one column, whose windows are as narrow.
template <class Params>
void MakeColumn(Random& random, Params& params, int32_t& filter_w, int32_t& w) {
  w = filter_w = params.dilation_w = 1;
  params.extra_padding = random.Chance(0.3)
                             ? ExtraPadding{.top = 1, .left = 0, .bottom = 2, .right = 0}
                             : ExtraPadding{};
}

// Makes a window of three taps so far apart that many of them meet padding: they are left out of
// products (kernels/conv2d/parts.h).
template <class Params>
void MakeFarDilated(Random& random, Params& params, int32_t& filter_h, int32_t& filter_w) {
  filter_h = filter_w = 3;
  params.padding = Padding::kSame;
  params.stride_h = random.Pick({1, 1, 2});
  params.stride_w = random.Pick({1, 1, 2});
  // From 17 on, images are smaller than that.
  params.dilation_h = static_cast<int32_t>(random.Pick<int64_t>({1, random.Int(4, 7), 18}));
  params.dilation_w = static_cast<int32_t>(random.Pick<int64_t>({1, random.Int(4, 7), 18}));
}

// `groups` of `group_in` inputs and `group_out` outputs.
inline OpTester RandomConv2DOf(Random& random, const ProductCases& cases, int32_t groups,
                               int32_t group_in, int32_t group_out) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  RandomWindow(random, params);
  auto filter_h = static_cast<int32_t>(random.Int(1, 4));
  auto filter_w = static_cast<int32_t>(random.Int(1, 4));
  if (random.Chance(0.4)) {
    filter_h = filter_w = params.stride_h = params.stride_w = 1;  // rows of the input, uncopied
    if (random.Chance(0.7)) params.extra_padding = {};
  }
  const auto n = static_cast<int32_t>(random.Int(1, 3));
  // Four taps with a dilation of 2 reach 7 pixels.
  const auto h = static_cast<int32_t>(random.Int(8, 17));
  auto w = static_cast<int32_t>(random.Int(7, 17));
  if (random.Chance(0.15)) MakeColumn(random, params, filter_w, w);
  if (w > 1 && random.Chance(0.2)) MakeFarDilated(random, params, filter_h, filter_w);
  const int32_t channels_in = group_in * groups, channels_out = group_out * groups;
  tester.Input(RandomFloats(random, {n, h, w, channels_in}, RandomPitch(random, channels_in)));
  AddWeights(tester, random, {channels_out, filter_h, filter_w, group_in}, channels_out, cases);
  return tester;
}

inline OpTester RandomConv2D(Random& random, const ProductCases& cases) {
  const int32_t groups = cases.groups ? random.Pick({1, 1, 1, 2, 3}) : 1;
  const int32_t group_in = random.Pick({1, 2, 3, 5, 8, 16, 17, 31, 40});
  const auto group_out = static_cast<int32_t>(random.Int(1, 70));
  return RandomConv2DOf(random, cases, groups, group_in, group_out);
}

// Several groups of few inputs and outputs.
inline OpTester RandomSmallGroups(Random& random, const ProductCases& cases) {
  const auto groups = static_cast<int32_t>(random.Int(2, 20));
  const auto group_out = static_cast<int32_t>(random.Int(1, 9));
  const auto group_in = random.Chance(0.5) ? group_out : static_cast<int32_t>(random.Int(1, 8));
  return RandomConv2DOf(random, cases, groups, group_in, group_out);
}

inline OpTester RandomDepthwiseConv2D(Random& random, const ProductCases& cases) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  RandomWindow(random, params);
  params.depth_multiplier = cases.groups ? random.Pick({1, 1, 1, 2, 5, 9, 17}) : 1;
  const auto channels = static_cast<int32_t>(random.Int(1, 70));
  const int32_t channels_out = channels * params.depth_multiplier;
  auto filter_h = static_cast<int32_t>(random.Int(1, 5));
  int32_t filter_w = random.Pick({1, 2, 3, 3, 4, 5, 5, 7});
  // Images smaller than the reach of the filter too, where SAME pads them up.
  const int32_t least = params.padding == Padding::kSame ? 1 : 13;
  const auto n = static_cast<int32_t>(random.Int(1, 3));
  auto h = static_cast<int32_t>(random.Int(least, 19));
  auto w = static_cast<int32_t>(random.Int(least, 30));
  // Long filters, images of one column, and long ones of one line, which threads share in parts.
  const int64_t kind = random.Int(0, 11);
  const auto length = static_cast<int32_t>(random.Int(60, 400));
  if (kind == 0) filter_w = 20, w = 41;
  if (kind == 1) filter_w = 1, w = 1, filter_h = 20, h = 41;
  if (kind == 2) filter_h = 1, h = 1, w = length;
  if (kind == 3) filter_h = filter_w, filter_w = 1, w = 1, h = length;
  tester.Input(RandomFloats(random, {n, h, w, channels}, RandomPitch(random, channels)));
  AddWeights(tester, random, {1, filter_h, filter_w, channels_out}, channels_out, cases);
  return tester;
}

// Weights that are run-time values come with at least `min_rows`: fewer are not worth packing for.
inline OpTester RandomFullyConnected(Random& random, int32_t min_rows = 1) {
  OpTester tester("FULLY_CONNECTED");
  tester.params<FullyConnectedParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu, Activation::kTanh});
  auto depth = static_cast<int32_t>(random.Int(1, 150));
  auto units = static_cast<int32_t>(random.Int(1, 200));
  int32_t rows = random.Pick({1, 1, 2, 7, 19, 40});
  // Weights of 0.5 to 1.4 MB, which every other run reads from their end.
  if (random.Chance(0.05)) {
    rows = 1;
    depth = static_cast<int32_t>(random.Int(400, 600));
    units = static_cast<int32_t>(random.Int(350, 600));
  }
  tester.Input(RandomFloats(random, {rows, depth}, RandomPitch(random, depth)));
  AddWeights(tester, random, {units, depth}, units, {.run_time_weights = rows >= min_rows});
  return tester;
}

// Transposes the left side only where `adjoint_left` allows it. There are at least `min_lines` rows
// and as many columns.
inline OpTester RandomBatchMatMul(Random& random, bool adjoint_left, int32_t min_lines = 1) {
  OpTester tester("BATCH_MATMUL");
  auto& params = tester.params<BatchMatMulParams>();
  params.adj_x = adjoint_left && random.Chance(0.3);
  params.adj_y = random.Chance(0.5);
  const auto rows = static_cast<int32_t>(random.Int(min_lines, 40));
  const auto depth = static_cast<int32_t>(random.Int(1, 70));
  const auto columns = static_cast<int32_t>(random.Int(min_lines, 70));
  const auto matrix = [&](Shape shape, int32_t outer, int32_t inner, bool adjoint) {
    if (adjoint) std::swap(outer, inner);
    shape.push_back(outer);
    shape.push_back(inner);
    return RandomFloats(random, shape, RandomPitch(random, inner));
  };
  tester.Input(matrix(random.Pick({Shape{2, 1}, Shape{2, 3}}), rows, depth, params.adj_x));
  const TestTensor y = matrix(random.Pick({Shape{}, Shape{3}, Shape{1, 3}, Shape{2, 3}}), depth,
                              columns, params.adj_y);
  y.info().row_pitch == 0 && random.Chance(0.4) ? tester.Constant(y) : tester.Input(y);
  return tester;
}

// The terms of one sum of a BATCH_MATMUL.
inline double BatchMatMulDepth(OpTester& tester) {
  return tester.op.inputs[0].shape.dim(tester.params<BatchMatMulParams>().adj_x ? -2 : -1);
}

// The bounds for sums of `depth` products under an activation.
template <class Params>
std::vector<float> ProductBounds(const OpTester& tester, double depth) {
  return Bounds(tester, depth,
                [](OpTester& plain) { plain.params<Params>().activation = Activation::kNone; });
}

}  // namespace fuselite::kernels::testing
