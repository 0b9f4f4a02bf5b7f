// Random operators with float32 activations and integer weights.
#pragma once

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/fully_connected/fully_connected.h"
#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {

// Float activations; here and there all zero, far from zero, or of one sign.
inline TestTensor RandomFloats(Random& random, Shape shape, bool may_pitch) {
  const int32_t width = shape.dim(-1);
  TestTensor x({.type = DataType::kFloat32,
                .shape = shape,
                .row_pitch = may_pitch ? RandomPitch(random, width) : 0},
               4 * random.Int(0, 3));
  const float low = random.Pick({-1.0f, -1.0f, 0.0f, -300.0f, -1e-38f}),
              high = random.Pick({0.0f, 1.0f, 9.0f, 1e-38f});
  x.Fill(random, low, high);
  return x;
}

inline TestTensor RandomWeights(Random& random, DataType type, Shape shape, int64_t channels,
                                bool per_channel) {
  return RandomTensor(random,
                      {.type = type,
                       .shape = shape,
                       .quantization = RandomQuantization(random, channels, per_channel, 0, 0)});
}

inline void AddFloatBias(Random& random, OpTester& tester, int32_t channels) {
  if (random.Chance(0.7)) {
    tester.Input(RandomFloats(random, {channels}, false));
  } else {
    tester.Absent();
  }
}

inline Activation RandomClamp(Random& random) {
  return random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
}

inline OpTester RandomHybridFullyConnected(Random& random, std::initializer_list<DataType> types) {
  OpTester tester("FULLY_CONNECTED");
  auto& params = tester.params<FullyConnectedParams>();
  params.asymmetric_quantize_inputs = random.Chance(0.5);
  params.activation = RandomClamp(random);
  const int32_t depth = random.Int(1, 150), units = random.Int(1, 120);
  tester.Input(RandomFloats(random, {random.Pick({1, 2, 7, 30}), depth}, true));
  const TestTensor weights =
      RandomWeights(random, random.Pick(types), {units, depth}, units, random.Chance(0.5));
  tester.Constant(weights);
  AddFloatBias(random, tester, units);
  return tester;
}

// `groups` of `in` inputs and `out` outputs.
inline OpTester RandomHybridConv2DOf(Random& random, std::initializer_list<DataType> types,
                                     int32_t groups, int32_t in, int32_t out) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 2);
  params.stride_w = random.Int(1, 2);
  params.dilation_w = random.Int(1, 2);
  params.activation = RandomClamp(random);
  // The last size is beyond a unit's share of the conversion.
  const int32_t size = random.Pick({6, 9, 9, 40});
  tester.Input(RandomFloats(random,
                            {static_cast<int32_t>(random.Int(1, 3)),
                             static_cast<int32_t>(random.Int(4, size)), size, in * groups},
                            true));
  const bool point = random.Chance(0.3);
  if (point && random.Chance(0.5)) params.stride_h = params.stride_w = 1;
  tester.Constant(RandomWeights(random, random.Pick(types),
                                {out * groups, point ? 1 : static_cast<int32_t>(random.Int(1, 3)),
                                 point ? 1 : static_cast<int32_t>(random.Int(1, 3)), in},
                                out * groups,
                                (groups > 1 && out * groups > 1) || random.Chance(0.7)));
  AddFloatBias(random, tester, out * groups);
  return tester;
}

// Has one group unless `may_group`.
inline OpTester RandomHybridConv2D(Random& random, std::initializer_list<DataType> types,
                                   bool may_group) {
  const int32_t groups = may_group ? random.Pick({1, 1, 2}) : 1, in = random.Int(1, 40),
                out = random.Int(1, 50);
  return RandomHybridConv2DOf(random, types, groups, in, out);
}

// Groups of 2, 4 or 8 inputs and as many outputs.
inline OpTester RandomHybridGroups(Random& random, std::initializer_list<DataType> types) {
  const int32_t group = random.Pick({2, 4, 8}), groups = random.Int(2, 150 / group);
  return RandomHybridConv2DOf(random, types, groups, group, group);
}

inline OpTester RandomHybridDepthwise(Random& random, int32_t multiplier) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 2);
  params.stride_w = random.Int(1, 2);
  params.dilation_h = random.Int(1, 2);
  params.dilation_w = random.Int(1, 2);
  params.activation = RandomClamp(random);
  const int32_t in = random.Int(1, 150);
  params.depth_multiplier = multiplier;
  const int32_t size = random.Pick({9, 9, 23});
  int32_t height = size > 9 ? size : static_cast<int32_t>(random.Int(9, size)), width = size;
  int32_t filter = size > 9 ? 11 : static_cast<int32_t>(random.Int(1, 5));
  if (random.Chance(0.15)) {  // a long line, which threads share in parts
    height = filter = 1;
    width = static_cast<int32_t>(random.Int(60, 400));
  }
  tester.Input(
      RandomFloats(random, {static_cast<int32_t>(random.Int(1, 3)), height, width, in}, true));
  tester.Constant(RandomWeights(
      random, DataType::kInt8, {1, filter, static_cast<int32_t>(random.Int(1, 4)), in * multiplier},
      in * multiplier, true));
  AddFloatBias(random, tester, in * multiplier);
  return tester;
}

// The left operand is transposed with the probability `adj_x`. Matrices of a run repay packing
// (RequireWorthPacking) where `packs`.
inline OpTester RandomHybridBatchMatMul(Random& random, double adj_x, bool packs) {
  OpTester tester("BATCH_MATMUL");
  auto& params = tester.params<BatchMatMulParams>();
  params.asymmetric_quantize_inputs = random.Chance(0.5);
  params.adj_x = random.Chance(adj_x);
  params.adj_y = random.Chance(0.5);
  const int32_t rows = random.Int(packs ? 4 : 1, 30), depth = random.Int(1, 70);
  const int32_t fewest = packs ? 256 / (rows * depth) + 1 : 1;
  const int32_t columns = random.Int(fewest, 70);
  // Up to two batch dimensions, along each of which an operand may be broadcast.
  Shape x, y;
  for (int64_t d = random.Int(1, 2); d > 0; --d) {
    const auto batches = static_cast<int32_t>(random.Int(1, 3));
    x.push_back(random.Chance(0.7) ? batches : 1);
    y.push_back(random.Chance(0.7) ? batches : 1);
  }
  for (const int32_t size : {params.adj_x ? depth : rows, params.adj_x ? rows : depth}) {
    x.push_back(size);
  }
  for (const int32_t size : {params.adj_y ? columns : depth, params.adj_y ? depth : columns}) {
    y.push_back(size);
  }
  tester.Input(RandomFloats(random, x, true));
  const TestTensor right = RandomWeights(random, DataType::kInt8, y, columns, random.Chance(0.3));
  if (random.Chance(0.3)) {
    tester.Input(right);
  } else {
    tester.Constant(right);
  }
  return tester;
}

}  // namespace fuselite::kernels::testing
