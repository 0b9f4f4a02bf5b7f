// Quantized convolutions and fully connected layers.
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/quantized_tail.h"
#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kI8 = DataType::kInt8, kU8 = DataType::kUInt8, kI16 = DataType::kInt16;
constexpr DataType kI32 = DataType::kInt32, kI64 = DataType::kInt64, kI4 = DataType::kInt4;

Quantization Per(std::vector<float> scales, int32_t zero_point = 0) {
  Quantization q;
  q.zero_points.assign(scales.size(), zero_point);
  q.scales = std::move(scales);
  return q;
}

template <class T>
std::vector<T> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<T>() : std::vector<T>{};
}

// One pixel of two channels, two filters.
template <class X, class W, class B>
OpTester SmallConv(DataType x, std::vector<X> values, Quantization xq, DataType w,
                   std::vector<W> weights, Quantization wq, DataType b, std::vector<B> bias) {
  OpTester tester("CONV_2D");
  tester.params<Conv2DParams>().stride_w = tester.params<Conv2DParams>().stride_h = 1;
  tester.Input(TestTensor::Of<X>(x, {1, 1, 1, 2}, values, xq));
  tester.Constant(TestTensor::Of<W>(w, {2, 1, 1, 2}, weights, wq));
  tester.Constant(TestTensor::Of<B>(b, {2}, bias));
  return tester;
}

TEST(QuantizedConv2DTest, Int8PerChannel) {
  // Sums (10 - 1) * 2 + (-5 - 1) * 3 + 7 = 7 and 9 * -4 + -6 * 1 - 8 = -50; scales 0.5, 0.25.
  OpTester tester = SmallConv<int8_t, int8_t, int32_t>(
      kI8, {10, -5}, Per({1.0f}, 1), kI8, {2, 3, -4, 1}, Per({0.5f, 0.25f}), kI32, {7, -8});
  tester.Output(kI8, Per({1.0f}, -3));
  EXPECT_THAT(RunReference<int8_t>(tester), ::testing::ElementsAre(1, -16)) << "3.5 -> 4, -12.5";
}

TEST(QuantizedConv2DTest, Int4WeightsLowerNibbleFirst) {
  OpTester tester = SmallConv<int8_t, uint8_t, int32_t>(kI8, {10, 1}, Per({1.0f}), kI4,
                                                        {0x2F, 0x81}, Per({1.0f}), kI32, {0, 0});
  tester.Output(kI8, Per({1.0f}));
  EXPECT_THAT(RunReference<int8_t>(tester), ::testing::ElementsAre(-10 + 2, 10 - 8));
}

TEST(QuantizedConv2DTest, Uint8WithZeroPointsAndRelu6) {
  OpTester tester = SmallConv<uint8_t, uint8_t, int32_t>(
      kU8, {130, 128}, Per({1.0f}, 128), kU8, {129, 0, 255, 0}, Per({1.0f}, 127), kI32, {0, 0});
  tester.params<Conv2DParams>().activation = Activation::kRelu6;
  tester.Output(kU8, Per({1.0f}, 10));
  EXPECT_THAT(RunReference<uint8_t>(tester), ::testing::ElementsAre(14, 16)) << "4, and 256 -> 6";
}

TEST(QuantizedConv2DTest, Int16WithInt64Bias) {
  OpTester tester =
      SmallConv<int16_t, int8_t, int64_t>(kI16, {30000, 30000}, Per({1.0f}), kI8, {100, 127, 1, -1},
                                          Per({1.0f}), kI64, {int64_t{1} << 33, 5});
  tester.Output(kI16, Per({0x1p19f}));
  // 30000 * 227 + 2^33 = 8,596,744,592, over 2^19 with a 16-bit multiplier: 16396.9.
  EXPECT_THAT(RunReference<int16_t>(tester), ::testing::ElementsAre(16397, 0));
}

TEST(QuantizedFullyConnectedTest, RoundsInDoublePrecision) {
  OpTester tester("FULLY_CONNECTED");
  tester.Input(TestTensor::Of<int8_t>(kI8, {1, 1}, {1}, Per({1.0f})));
  tester.Constant(TestTensor::Of<int8_t>(kI8, {3, 1}, {5, -5, 7}, Per({0.5f})));
  tester.Output(kI8, Per({1.0f}, 1));
  EXPECT_THAT(RunReference<int8_t>(tester), ::testing::ElementsAre(4, -2, 5));
}

// One row of two terms, two units.
template <class X, class W, class B>
OpTester SmallDense(DataType x, std::vector<X> values, Quantization xq, DataType w,
                    std::vector<W> weights, Quantization wq, DataType b, std::vector<B> bias) {
  OpTester tester("FULLY_CONNECTED");
  tester.Input(TestTensor::Of<X>(x, {1, 2}, values, xq));
  tester.Constant(TestTensor::Of<W>(w, {2, 2}, weights, wq));
  if (!bias.empty()) tester.Constant(TestTensor::Of<B>(b, {2}, bias));
  return tester;
}

TEST(QuantizedFullyConnectedTest, Int16WeightsSumIn64Bits) {
  // -32768 * -32768 * 2 + 2^31 = 2^32 and 32767 * 32767 - 32768 - 5, over 2^18 with one rounding.
  OpTester tester = SmallDense<int16_t, int16_t, int32_t>(
      kI16, {-32768, -32768}, Per({1.0f}), kI16, {-32768, -32768, -32767, 1}, Per({1.0f, 0.5f}),
      kI32, {0x7fffffff, -5});
  tester.Output(kI16, Per({0x1p18f}));
  EXPECT_THAT(RunReference<int16_t>(tester), ::testing::ElementsAre(16384, 2048));
}

TEST(QuantizedFullyConnectedTest, Uint8ToInt16) {
  // (130 - 128) * (10 - 3) + (0 - 128) * (255 - 3) - 1 = -32243 and 2 * -3 - 128 * -3 + 4 = 382.
  OpTester tester = SmallDense<uint8_t, uint8_t, int32_t>(
      kU8, {130, 0}, Per({1.0f}, 128), kU8, {10, 255, 0, 0}, Per({1.0f}, 3), kI32, {-1, 4});
  tester.Output(kI16, Per({4.0f}));
  EXPECT_THAT(RunReference<int16_t>(tester), ::testing::ElementsAre(-8061, 96)) << "95.5 -> 96";
}

TEST(QuantizedFullyConnectedTest, RefusesBiasesThatTFLiteReadsWrongly) {
  OpTester bare = SmallDense<uint8_t, uint8_t, int32_t>(kU8, {1, 1}, Per({1.0f}), kU8, {1, 1, 1, 1},
                                                        Per({1.0f}), kI32, {});
  bare.Output(kI16, Per({1.0f}));
  EXPECT_FALSE(bare.Infer().ok()) << "uint8 to int16 reads a bias always";
  OpTester wide = SmallDense<int16_t, int16_t, int64_t>(kI16, {1, 1}, Per({1.0f}), kI16,
                                                        {1, 1, 1, 1}, Per({1.0f}), kI64, {1, 1});
  wide.Output(kI16, Per({1.0f}));
  EXPECT_FALSE(wide.Infer().ok()) << "the bias is read as int32";
  wide.params<FullyConnectedParams>().quantized_bias_type = kI64;
  EXPECT_TRUE(wide.Infer().ok());
}

TEST(QuantizedBatchMatMulTest, Int32OutputsHaveNoZeroPoints) {
  const auto infer = [](int32_t x_zero, int32_t y_zero) {
    OpTester tester("BATCH_MATMUL");
    tester.Input(TestTensor::Of<int8_t>(kI8, {1, 1}, {1}, Per({1.0f}, x_zero)));
    tester.Input(TestTensor::Of<int8_t>(kI8, {1, 1}, {1}, Per({1.0f}, y_zero)));
    tester.Output(kI32, {});
    return tester.Infer().ok();
  };
  EXPECT_TRUE(infer(0, 0));
  EXPECT_FALSE(infer(1, 0));
  EXPECT_FALSE(infer(0, 1));
}

TEST(QuantizedInferTest, RefusesWhatHasNoMeaning) {
  const auto infer = [](const Quantization& x, const Quantization& w, const Quantization& y) {
    OpTester tester =
        SmallConv<int8_t, int8_t, int32_t>(kI8, {1, 1}, x, kI8, {1, 1, 1, 1}, w, kI32, {0, 0});
    tester.Output(kI8, y);
    return tester.Infer();
  };
  EXPECT_TRUE(infer(Per({1}), Per({1}), Per({1})).ok());
  EXPECT_FALSE(infer({}, Per({1}), Per({1})).ok()) << "no input scale";
  EXPECT_FALSE(infer(Per({1}), {}, Per({1})).ok()) << "no scale of the weights";
  EXPECT_FALSE(infer(Per({1}), Per({1}), Per({0})).ok()) << "output scale 0";
  EXPECT_FALSE(infer(Per({1}), Per({1, 2, 3}), Per({1})).ok()) << "three scales, two filters";
  EXPECT_FALSE(infer(Per({1}), Per({1}, 4), Per({1})).ok()) << "zero point of int8 weights";
}

TEST(QuantizedTailTest, AnExplicitStageTakesTheSums) {
  OpTester tester = SmallConv<int8_t, int8_t, int32_t>(
      kI8, {10, -5}, Per({1.0f}, 1), kI8, {2, 3, -4, 1}, Per({0.5f, 0.25f}), kI32, {7, -8});
  tester.Output(kI8, Per({1.0f}, -3));
  ASSERT_TRUE(tester.Infer().ok());
  Result<TailStage> stage = RequantizeStage(tester.op, Activation::kNone, {}, 2);
  ASSERT_TRUE(stage.ok());
  TailStage lookup;
  lookup.kind = TailStage::Kind::kLookup;
  lookup.table.resize(256);
  for (int i = 0; i < 256; ++i) lookup.table[i] = static_cast<uint8_t>(i + 1);
  tester.op.tail.stages = {*stage, lookup};
  tester.op.outputs[0].quantization = Per({7.0f}, 5);  // of what the table gives
  EXPECT_THAT(RunReference<int8_t>(tester), ::testing::ElementsAre(2, -15));
}

int32_t LeastOf(DataType x) { return x == kI16 ? 0 : x == kI8 ? -128 : 0; }
int32_t MostOf(DataType x) { return x == kI16 ? 0 : LeastOf(x) + 255; }

// A bias in most cases: int32, or int64 of 16-bit activations.
void AddBias(Random& random, DataType x, int32_t channels, OpTester* tester) {
  if (random.Chance(0.3)) return;
  const DataType type = x == kI16 && random.Chance(0.7) ? kI64 : kI32;
  tester->Input(RandomTensor(random, {.type = type, .shape = {channels}}, BitWidth(type) / 8));
}

// Zero points are 0 in 16 bits.
Quantization RandomActivations(Random& random, DataType x) {
  Quantization q = RandomQuantization(random, 1, false, LeastOf(x), MostOf(x));
  if (x == kI16) q.scales[0] /= 100;
  return q;
}

int CompareTyped(const OpTester& tester, Random& random) {
  switch (tester.op.outputs[0].type) {
    case kI8: return CompareToTheBit<int8_t>(tester, random);
    case kI16: return CompareToTheBit<int16_t>(tester, random);
    case kI32: return CompareToTheBit<int32_t>(tester, random);
    default: return CompareToTheBit<uint8_t>(tester, random);
  }
}

OpTester RandomConv(Random& random, DataType x, DataType w) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 2);
  params.stride_w = random.Int(1, 2);
  params.dilation_w = random.Int(1, 2);
  params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  const bool is_signed = x != kU8;
  const int32_t groups = random.Pick({1, 1, 2}), in = random.Int(1, 40), out = random.Int(1, 50);
  tester.Input(RandomTensor(random,
                            {.type = x,
                             .shape = {1, static_cast<int32_t>(random.Int(4, 9)), 9, in * groups},
                             .quantization = RandomActivations(random, x),
                             .row_pitch = random.Chance(0.3) ? in * groups + random.Int(1, 9) : 0},
                            random.Int(0, 3) * BitWidth(x) / 8));
  tester.Constant(RandomTensor(
      random, {.type = w,
               .shape = {out * groups, static_cast<int32_t>(random.Int(1, 3)),
                         static_cast<int32_t>(random.Int(1, 3)), in},
               .quantization =
                   is_signed ? RandomQuantization(random, out * groups, random.Chance(0.7), 0, 0)
                             : RandomQuantization(random, 1, false, 0, 255)}));
  AddBias(random, x, out * groups, &tester);
  Quantization output = RandomActivations(random, x);
  output.scales[0] *= 10;
  tester.Output(x, output);
  return tester;
}

TEST(QuantizedHighwayTest, ConvolutionsToTheBit) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType x = random.Pick({kI8, kI8, kU8, kI16});
    OpTester tester = RandomConv(random, x, x == kU8 ? kU8 : random.Pick({kI8, kI8, kI4}));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    if (random.Chance(0.3)) {
      tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
    }
    runs += CompareTyped(tester, random);
    if (HasFailure()) return;
  }
  ExpectMostRan(runs, 60);
}

TEST(QuantizedHighwayTest, FullyConnectedToTheBit) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FULLY_CONNECTED");
    const DataType x = random.Pick({kI8, kI16});
    // Beyond 510 terms, sums of 16-bit activations are put together.
    const int32_t depth = random.Int(1, random.Chance(0.2) ? 1500 : 150);
    const int32_t units = random.Int(1, 120);
    tester.Input(RandomTensor(random, {.type = x,
                                       .shape = {random.Pick({1, 2, 7, 30}), depth},
                                       .quantization = RandomActivations(random, x)}));
    const bool per_channel = random.Chance(0.5);
    const int64_t zero = per_channel ? 0 : 100;
    tester.Constant(RandomTensor(
        random, {.type = random.Pick({kI8, kI4}),
                 .shape = {units, depth},
                 .quantization = RandomQuantization(random, units, per_channel, -zero, zero)}));
    AddBias(random, x, units, &tester);
    Quantization output = RandomActivations(random, x);
    output.scales[0] *= 10;
    tester.Output(x, output);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    runs += CompareTyped(tester, random);
    if (HasFailure()) return;
  }
  ExpectMostRan(runs, 60);
}

OpTester RandomDepthwise(Random& random, DataType x, DataType w) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 2);
  params.stride_w = random.Int(1, 2);
  params.dilation_h = random.Int(1, 2);
  params.dilation_w = random.Int(1, 2);
  params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  const bool is_signed = x != kU8;
  const int32_t in = random.Int(1, 80), multiplier = random.Pick({1, 1, 3});
  const int32_t channels = in * multiplier;
  params.depth_multiplier = multiplier;
  tester.Input(RandomTensor(
      random,
      {.type = x,
       .shape = {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(6, 12)),
                 static_cast<int32_t>(random.Int(8, 23)), in},
       .quantization = RandomActivations(random, x),
       .row_pitch = random.Chance(0.3) ? in + random.Int(1, 9) : 0},
      random.Int(0, 3) * BitWidth(x) / 8));
  tester.Constant(RandomTensor(
      random,
      {.type = w,
       .shape = {1, static_cast<int32_t>(random.Int(1, 3)), static_cast<int32_t>(random.Int(1, 4)),
                 channels},
       .quantization = is_signed ? RandomQuantization(random, channels, random.Chance(0.7), 0, 0)
                                 : RandomQuantization(random, 1, false, 0, 255)}));
  AddBias(random, x, channels, &tester);
  Quantization output = RandomActivations(random, x);
  output.scales[0] *= 3;
  tester.Output(x, output);
  return tester;
}

TEST(QuantizedHighwayTest, DepthwiseConvolutionsToTheBit) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType x = random.Pick({kI8, kI8, kU8, kI16});
    OpTester tester = RandomDepthwise(random, x, x == kU8 ? kU8 : random.Pick({kI8, kI8, kI4}));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    if (random.Chance(0.3)) {
      tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
    }
    runs += CompareTyped(tester, random);
    if (HasFailure()) return;
  }
  ExpectMostRan(runs, 80);
}

TEST(QuantizedHighwayTest, BatchMatMulToTheBit) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("BATCH_MATMUL");
    auto& params = tester.params<BatchMatMulParams>();
    params.adj_x = random.Chance(0.1);
    params.adj_y = random.Chance(0.5);
    const int32_t rows = random.Int(1, 30), depth = random.Int(1, 70), columns = random.Int(1, 70);
    const int32_t outer = random.Int(1, 2), inner = random.Int(1, 3);
    const int32_t x_inner = random.Chance(0.7) ? inner : 1,
                  y_outer = random.Chance(0.7) ? outer : 1;
    const DataType type = random.Pick({kI8, kI8, kI8, kI16});
    const bool wide = type == kI8 && random.Chance(0.2);
    TensorInfo x{.type = type, .quantization = RandomActivations(random, type)};
    if (wide) x.quantization.zero_points = {0};
    x.shape =
        params.adj_x ? Shape{outer, x_inner, depth, rows} : Shape{outer, x_inner, rows, depth};
    TensorInfo y{.type = kI8, .quantization = RandomQuantization(random, 1, false, -128, 127)};
    if (wide) y.quantization.zero_points = {0};
    y.shape = params.adj_y ? Shape{y_outer, inner, columns, depth}
                           : Shape{y_outer, inner, depth, columns};
    if (random.Chance(0.3)) x.row_pitch = x.shape.dim(-1) + random.Int(1, 9);
    const bool constant = random.Chance(0.3);
    if (!constant && random.Chance(0.3)) y.row_pitch = y.shape.dim(-1) + random.Int(1, 9);
    tester.Input(RandomTensor(random, x, 2 * random.Int(0, 3)));
    TestTensor right = RandomTensor(random, y, random.Int(0, 3));
    if (constant) {
      tester.Constant(right);
    } else {
      tester.Input(right);
    }
    Quantization output = RandomActivations(random, type);
    output.scales[0] *= 10;
    tester.Output(wide ? kI32 : type, output);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    if (random.Chance(0.3)) tester.op.outputs[0].row_pitch = columns + random.Int(1, 9);
    runs += CompareTyped(tester, random);
    if (HasFailure()) return;
  }
  ExpectMostRan(runs, 80);
}

}  // namespace
}  // namespace fuselite::kernels::testing
