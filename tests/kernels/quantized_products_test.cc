// Quantized convolutions and fully connected layers.
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/quantized_tail.h"
#include "tests/kernels/quantized_cases.h"
#include "tests/kernels/quantized_product_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kI8 = DataType::kInt8, kU8 = DataType::kUInt8, kI16 = DataType::kInt16;
constexpr DataType kI32 = DataType::kInt32, kI64 = DataType::kInt64, kI4 = DataType::kInt4;

Quantization Per(std::vector<float> scales, int32_t zero_point = 0) {
  auto zero_points = ChannelValues<int32_t>::Repeated(scales.size(), zero_point);
  return {.scales = std::move(scales), .zero_points = std::move(zero_points)};
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
  const Quantization products = BiasQuantization(tester.op);
  tester.Constant(TestTensor::Of<B>(b, {2}, bias, products));
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
  const Quantization products = BiasQuantization(tester.op);
  if (!bias.empty()) tester.Constant(TestTensor::Of<B>(b, {2}, bias, products));
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
  wide.op.inputs[2].quantization = {};
  EXPECT_FALSE(wide.Infer().ok()) << "its steps are not those of the products";
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

// Packing takes longer than so few products; a constant is packed once.
TEST(QuantizedBatchMatMulTest, FewProductsOfRunTimeMatricesAreTheReferences) {
  const auto run = [](int32_t rows, bool constant) {
    OpTester tester("BATCH_MATMUL");
    tester.Input(TestTensor({.type = kI8, .shape = {rows, 4}, .quantization = Per({0.5f})}));
    const TestTensor y({.type = kI8, .shape = {4, 4}, .quantization = Per({0.5f})});
    constant ? tester.Constant(y) : tester.Input(y);
    tester.Output(kI8, Per({1.0f}));
    EXPECT_TRUE(tester.Infer().ok());
    return tester.Run("highway", RunnableIsas().back()).status().code();
  };
  if (!RunnableIsas().back().has_vectors()) GTEST_SKIP() << "no vector target on this machine";
  EXPECT_EQ(run(16, false), StatusCode::kUnsupported);
  EXPECT_EQ(run(17, false), StatusCode::kOk);
  EXPECT_EQ(run(16, true), StatusCode::kOk);
  EXPECT_EQ(run(3, false), StatusCode::kUnsupported) << "few rows, but columns of spread terms";
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
  Result<TailStage> stage = RequantizeStage(tester.op, Activation::kNone, 2);
  ASSERT_TRUE(stage.ok());
  TailStage lookup;
  lookup.kind = TailStage::Kind::kLookup;
  std::vector<uint8_t> table(256);
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i + 1);
  lookup.table = std::move(table);
  tester.op.tail.stages = {*stage, lookup};
  tester.op.outputs[0].quantization = Per({7.0f}, 5);  // of what the table gives
  EXPECT_THAT(RunReference<int8_t>(tester), ::testing::ElementsAre(2, -15));
}

int CompareTyped(const OpTester& tester, Random& random) {
  switch (tester.op.outputs[0].type) {
    case kI8: return CompareToTheBit<int8_t>(tester, random);
    case kI16: return CompareToTheBit<int16_t>(tester, random);
    case kI32: return CompareToTheBit<int32_t>(tester, random);
    default: return CompareToTheBit<uint8_t>(tester, random);
  }
}

TEST(QuantizedHighwayTest, ConvolutionsToTheBit) {
  CompareRandomly(
      60,
      [](Random& random) {
        return RandomQuantizedConv2D(random, {.types = {kI8, kI8, kU8, kI16}});
      },
      CompareTyped);
}

TEST(QuantizedHighwayTest, FullyConnectedToTheBit) {
  CompareRandomly(
      60,
      [](Random& random) {
        return RandomQuantizedFullyConnected(random, {.types = {kI8, kI16}});
      },
      CompareTyped);
}

// A product with one unit, whose sums with several rows or pixels are computed at once.
OpTester RandomUnit(Random& random) {
  const bool is_convolution = random.Chance(0.5);
  OpTester tester(is_convolution ? "CONV_2D" : "FULLY_CONNECTED");
  const int32_t depth = random.Pick({128, 130, 200, 301}),
                rows = random.Pick({16, 17, 64, 65, 150});
  const QuantizedProductCases cases{.types = {kI8, kI8, kU8}};
  const QuantizedCase c = RandomQuantizedCase(random, cases.types, depth);
  if (is_convolution) {
    auto& params = tester.params<Conv2DParams>();
    params.padding = Padding::kValid;
    params.stride_h = params.stride_w = params.dilation_h = params.dilation_w = 1;
    params.activation = RandomClampOrNone(random);
  } else {
    tester.params<FullyConnectedParams>().activation = RandomClampOrNone(random);
  }
  const Shape x = is_convolution ? Shape{1, rows, 1, depth} : Shape{rows, depth};
  const Shape weights = is_convolution ? Shape{1, 1, 1, depth} : Shape{1, depth};
  tester.Input(Activations(c, random, x))
      .Constant(QuantizedWeights(c, random, weights, WeightsQuantization(c, random, 1, 0, false)));
  AddIntegerBias(c, tester, random, 1);
  return tester.Output(c.type, c.output());
}

TEST(QuantizedHighwayTest, OneUnitToTheBit) { CompareRandomly(100, RandomUnit, CompareTyped); }

// Weights, biases or both come with each run; few rows by them are read where they lie.
OpTester AtRunTime(Random& random, OpTester tester) {
  const auto what = random.Int(1, 3);
  if (what & 1) tester.AtRunTime(1);
  if (what & 2) tester.AtRunTime(2);
  return tester;
}

TEST(QuantizedHighwayTest, FullyConnectedAtRunTimeToTheBit) {
  const auto compare = [](OpTester& tester, Random& random) {
    const bool packed = tester.op.inputs[1].type == kI4;  // known at run time, these are left
    const int runs = CompareTyped(tester, random);
    return packed ? std::max(runs, 1) : runs;
  };
  CompareRandomly(
      200,
      [](Random& random) {
        return AtRunTime(random,
                         RandomQuantizedFullyConnected(random, {.types = {kI8, kU8, kI16, kI16}}));
      },
      compare);
}

TEST(QuantizedHighwayTest, DepthwiseConvolutionsAtRunTimeToTheBit) {
  CompareRandomly(
      100,
      [](Random& random) {
        return AtRunTime(random,
                         RandomQuantizedDepthwise(random, {.types = {kI8, kU8, kI16, kI16}}));
      },
      CompareTyped);
}

TEST(QuantizedHighwayTest, DepthwiseConvolutionsToTheBit) {
  CompareRandomly(
      80,
      [](Random& random) {
        return RandomQuantizedDepthwise(random, {.types = {kI8, kI8, kU8, kI16}});
      },
      CompareTyped);
}

// A transposed left operand is left to the reference where no kernel is emitted.
int CompareOrLeave(OpTester& tester, Random& random) {
  const int runs = CompareTyped(tester, random);
  return tester.params<BatchMatMulParams>().adj_x ? std::max(runs, 1) : runs;
}

TEST(QuantizedHighwayTest, BatchMatMulToTheBit) {
  CompareRandomly(
      80,
      [](Random& random) {
        return RandomQuantizedBatchMatMul(random, {.types = {kI8, kI8, kI8, kI16}});
      },
      CompareOrLeave);
}

TEST(QuantizedHighwayTest, HeadsMatMulToTheBit) {
  CompareRandomly(80, RandomQuantizedHeadsMatMul, CompareTyped);
}

// Few rows or few columns, terms side by side or not, to the bit; more lines than a block has.
TEST(QuantizedHighwayTest, UnpackedMatricesToTheBit) {
  CompareRandomly(
      300,
      [](Random& random) {
        const int32_t few = static_cast<int32_t>(random.Int(1, 3));
        const bool down = random.Chance(0.5);
        const int32_t depth = random.Pick({1, 2, 3, 5, 7, 8, 15, 16, 33, 48, 200});
        // Several columns of many rows repay packing.
        const bool any = !down || (few == 1 && depth >= 8);
        const int32_t many =
            any ? random.Pick({1, 5, 17, 64, 65, 150}) : random.Pick({1, 5, 17, 31});
        OpTester tester("BATCH_MATMUL");
        auto& params = tester.params<BatchMatMulParams>();
        params.adj_y = !down || random.Chance(0.5);
        const int32_t rows = down ? many : few, columns = down ? few : many;
        const auto operand = [&](int32_t a, int32_t b) {
          return RandomTensor(random,
                              {.type = kI8,
                               .shape = {3, a, b},
                               .quantization = RandomQuantization(random, 1, false, -128, 127)});
        };
        tester.Input(operand(rows, depth));
        tester.Input(params.adj_y ? operand(columns, depth) : operand(depth, columns));
        Quantization output = RandomQuantization(random, 1, false, -128, 127);
        output.scales = {output.scale() * 10};
        tester.Output(kI8, output);
        EXPECT_TRUE(tester.Infer().ok());
        EXPECT_TRUE(ReadsMatricesUnpacked(tester.op, ResolveBatchMatMul(tester.op).value()));
        return tester;
      },
      CompareTyped);
}

// The least values among them, whose products are the largest.
TEST(QuantizedHighwayTest, FewRowsOrColumnsOfInt16ToTheBit) {
  CompareRandomly(
      100,
      [](Random& random) {
        const bool down = random.Chance(0.3);
        const int32_t rows = down ? 80 : static_cast<int32_t>(random.Int(1, 15));
        const int32_t columns =
            down ? static_cast<int32_t>(random.Int(1, 3)) : random.Pick({1, 5, 16, 197});
        const int32_t depth = random.Pick({1, 7, 33, 200});
        OpTester tester("BATCH_MATMUL");
        auto& params = tester.params<BatchMatMulParams>();
        params.adj_y = down || random.Chance(0.5);
        params.adj_x = random.Chance(0.3);
        const bool least = random.Chance(0.2);
        const auto operand = [&](bool transposed, int32_t a, int32_t b) {
          if (transposed) std::swap(a, b);
          TestTensor tensor =
              RandomTensor(random, {.type = kI16,
                                    .shape = {3, a, b},
                                    .quantization = Per({random.Float(0.001f, 0.01f)})});
          if (least) tensor.Fill(random, INT16_MIN, INT16_MIN);
          return tensor;
        };
        const TestTensor x = operand(params.adj_x, rows, depth);
        const TestTensor y = operand(params.adj_y, depth, columns);
        tester.Input(x).Input(y);
        const float scales = x.info().quantization.scale() * y.info().quantization.scale();
        tester.Output(kI16, Per({scales * random.Float(1e3f, 1e5f)}));
        EXPECT_TRUE(tester.Infer().ok());
        EXPECT_TRUE(ReadsMatricesUnpacked(tester.op, ResolveBatchMatMul(tester.op).value()));
        return tester;
      },
      CompareTyped);
}

}  // namespace
}  // namespace fuselite::kernels::testing
