// Float32 activations with 8-bit weights: quantized at run time.
#include <limits>

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/short_rows.h"
#include "tests/kernels/hybrid_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kI4 = DataType::kInt4;

Quantization Per(std::vector<float> scales) {
  auto zero_points = ChannelValues<int32_t>::Repeated(scales.size(), 0);
  return {.scales = std::move(scales), .zero_points = std::move(zero_points)};
}

// The reference's values; the fast candidates must have the same bits.
std::vector<float> RunAll(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  Random random(1);
  CompareToTheBit<float>(tester, random);
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>{};
}

TEST(DynamicScaleTest, SymmetricSpansTheLargestMagnitude) {
  const DynamicScale scale = MakeDynamicScale({-254, 100}, false);
  EXPECT_EQ(scale.scale, 2);
  EXPECT_EQ(scale.offset, 0);
  EXPECT_EQ(QuantizeDynamically(-254, scale), -127);
  EXPECT_EQ(QuantizeDynamically(5, scale), 3) << "halves go away from zero";
  EXPECT_EQ(QuantizeDynamically(-5, scale), -3);
  EXPECT_EQ(QuantizeDynamically(4.9f, scale), 2);
}

TEST(DynamicScaleTest, AsymmetricHasZeroOnAStep) {
  const DynamicScale scale = MakeDynamicScale({-0.4f, 254.6f}, true);
  EXPECT_FLOAT_EQ(scale.scale, 1);
  EXPECT_EQ(scale.offset, -128);
  EXPECT_EQ(QuantizeDynamically(0, scale), 0);
  EXPECT_EQ(QuantizeDynamically(200.2f, scale), 200);
  EXPECT_EQ(QuantizeDynamically(1e9f, scale), 255);
  const DynamicScale positive = MakeDynamicScale({100, 255}, true);
  EXPECT_FLOAT_EQ(positive.scale, 1) << "the range holds zero";
  EXPECT_EQ(positive.offset, -128);
  EXPECT_EQ(MakeDynamicScale({-255, -3}, true).offset, 127);
}

TEST(DynamicScaleTest, OddRanges) {
  for (bool asymmetric : {false, true}) {
    const DynamicScale zero = MakeDynamicScale({0, 0}, asymmetric);
    EXPECT_EQ(zero.scale, 1);
    EXPECT_EQ(QuantizeDynamically(0, zero), 0);
    const DynamicScale tiny = MakeDynamicScale({0, 1e-44f}, asymmetric);
    EXPECT_EQ(QuantizeDynamically(1e-44f, tiny), 0);
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(MakeDynamicScale({0, infinity}, asymmetric).scale));
  }
  EXPECT_TRUE(std::isnan(MakeDynamicScale({-3e38f, 3e38f}, true).scale));
}

TEST(DynamicScaleTest, SeveralAtOnceEqualEachAlone) {
  constexpr int kMax = ShortRowFunctions::kMaxScales;
  const float infinity = std::numeric_limits<float>::infinity();
  for (Isa isa : RunnableIsas()) {
    const ShortRowFunctions* functions = FindShortRowFunctions(isa);
    if (functions == nullptr) continue;
    SCOPED_TRACE(IsaName(isa));
    Random random(7);
    for (int run = 0; run < 5000; ++run) {
      DynamicRange ranges[kMax];
      DynamicScale scales[kMax];
      const int64_t n = random.Int(1, kMax);
      for (int64_t i = 0; i < n; ++i) {
        const float size = random.Pick({1.0f, 1.0f, 1e-3f, 300.0f, 1e-40f, 3e38f, infinity, 0.0f});
        const float a = size * random.Float(-1, 1), b = size * random.Float(-1, 1);
        ranges[i] = {std::min(a, b), std::max(a, b)};
        if (size == infinity) ranges[i].min = std::numeric_limits<float>::quiet_NaN();
      }
      functions->make_scales(ranges, n, scales);
      for (int64_t i = 0; i < n; ++i) {
        const DynamicScale alone = MakeDynamicScale(ranges[i], true);
        EXPECT_EQ(std::isnan(scales[i].scale), std::isnan(alone.scale));
        if (!std::isnan(alone.scale)) {
          ASSERT_EQ(scales[i].scale, alone.scale);
        }
        ASSERT_EQ(scales[i].inverse, alone.inverse);
        ASSERT_EQ(scales[i].offset, alone.offset) << ranges[i].min << " " << ranges[i].max;
      }
    }
  }
}

OpTester FullyConnected(Shape shape, const std::vector<float>& x, const std::vector<int8_t>& w,
                        std::vector<float> scales, bool asymmetric) {
  OpTester tester("FULLY_CONNECTED");
  tester.params<FullyConnectedParams>().asymmetric_quantize_inputs = asymmetric;
  tester.Input(TestTensor::Of(kF32, shape, x));
  const int32_t depth = shape.dim(-1);
  tester.Constant(TestTensor::Of(kI8, {static_cast<int32_t>(w.size()) / depth, depth}, w,
                                 Per(std::move(scales))));
  return tester;
}

TEST(HybridTest, FullyConnectedRowByRow) {
  // Steps of 1 and of 2; -63.5 becomes -64.
  OpTester tester = FullyConnected({2, 2}, {127, -63.5f, 254, 20}, {2, 3, 1, -1}, {0.5f, 2}, false);
  tester.Input(TestTensor::Of<float>(kF32, {2}, {1, -7}));
  EXPECT_THAT(RunAll(tester), ::testing::ElementsAre((254 - 192) * 0.5f + 1, (127 + 64) * 2 - 7,
                                                     (254 + 30) * 1.0f + 1, (127 - 10) * 4.0f - 7));
}

TEST(HybridTest, FullyConnectedAsymmetricWithActivation) {
  OpTester tester = FullyConnected({1, 2}, {0, 255}, {100, 2, 50, -1}, {0.25f}, true);
  tester.params<FullyConnectedParams>().activation = Activation::kRelu;
  EXPECT_THAT(RunAll(tester), ::testing::ElementsAre(127.5f, 0));
}

TEST(HybridTest, ZeroRowsGiveTheBiasAndNaNStaysInItsRow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpTester tester = FullyConnected({3, 2}, {0, 0, nan, 1, 127, 0}, {1, 2}, {1}, true);
  tester.Input(TestTensor::Of<float>(kF32, {1}, {-3}));
  const std::vector<float> y = RunAll(tester);
  ASSERT_EQ(y.size(), 3u);
  EXPECT_EQ(y[0], -3);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_NEAR(y[2], 124, 1e-3);
}

TEST(HybridTest, ConvolutionsQuantizeImageByImage) {
  for (bool several : {false, true}) {
    OpTester tester("CONV_2D");
    auto& params = tester.params<Conv2DParams>();
    params.padding = Padding::kSame;
    params.stride_h = params.stride_w = 1;
    tester.Input(TestTensor::Of<float>(kF32, {2, 1, 2, 1}, {127, -127, 254, 20}));
    tester.Constant(TestTensor::Of<int8_t>(kI8, {2, 1, 2, 1}, {1, 2, 3, 1},
                                           several ? Per({1, 0.5f}) : Per({1})));
    // Several scales go with asymmetric steps: of 254 / 255, and from 0 to 254.
    const float unit = several ? 0.5f : 1;
    const float tolerance = several ? 3 : 0;
    const std::vector<float> y = RunAll(tester);
    const std::vector<float> expected = {127 - 254, (381 - 127) * unit, -127, -381 * unit,
                                         254 + 40,  (762 + 20) * unit,  20,   60 * unit};
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], tolerance) << i;
  }
}

TEST(HybridTest, RefusesWhatTFLiteWouldReadWrongly) {
  OpTester offset = FullyConnected({1, 2}, {1, 2}, {1, 2}, {1}, false);
  offset.op.inputs[1].quantization.zero_points = {3};
  EXPECT_EQ(offset.Infer().code(), StatusCode::kInvalidArgument);
  OpTester count = FullyConnected({1, 2}, {1, 2}, {1, 2, 3, 4}, {1, 2, 3}, false);
  EXPECT_EQ(count.Infer().code(), StatusCode::kInvalidArgument);
  OpTester unscaled = FullyConnected({1, 2}, {1, 2}, {1, 2}, {}, false);
  EXPECT_EQ(unscaled.Infer().code(), StatusCode::kUnsupported);
}

// LiteRT's own kernels would scale the third row as the second. Each row is 127 steps of its own
// scale.
TEST(HybridTest, EachRowOfSeveralBatchesHasItsOwnScale) {
  OpTester each("BATCH_MATMUL");
  each.Input(TestTensor::Of<float>(kF32, {2, 2, 1, 1}, {127, 254, 508, 1016}));
  each.Constant(TestTensor::Of<int8_t>(kI8, {2, 2, 1, 1}, {1, 2, 3, 4}, Per({1})));
  EXPECT_THAT(RunAll(each), ::testing::ElementsAre(127, 508, 1524, 4064));
  OpTester shared("BATCH_MATMUL");
  shared.Input(TestTensor::Of<float>(kF32, {2, 2, 1, 1}, {127, 254, 508, 1016}));
  shared.Constant(TestTensor::Of<int8_t>(kI8, {1, 2}, {1, -1}, Per({0.5f})));
  EXPECT_THAT(RunAll(shared),
              ::testing::ElementsAre(63.5f, -63.5f, 127, -127, 254, -254, 508, -508));
}

void AddAffine(Random& random, OpTester& tester) {
  if (random.Chance(0.3)) tester.op.tail.stages = {TailStage::Unary(UnaryKind::kAffine, 2, 1)};
}

// Random cases made by `make`, every fast version against the reference.
template <class Make>
void CompareRandomly(Make make) {
  testing::CompareRandomly(60, make, CompareToTheBit<float>);
}

TEST(HybridHighwayTest, FullyConnectedToTheBit) {
  CompareRandomly([](Random& random) {
    OpTester tester = RandomHybridFullyConnected(random, {kI8, kI8, kI4});
    if (random.Chance(0.2)) tester.op.inputs[1].data = nullptr;  // known at run time only
    AddAffine(random, tester);
    return tester;
  });
}

// Few rows by weights of a run, which are read where they lie; more units than a block has.
TEST(HybridHighwayTest, FewRowsByWeightsOfARunToTheBit) {
  CompareRandomly([](Random& random) {
    const auto rows = static_cast<int32_t>(random.Int(1, 3));
    const int32_t depth = random.Pick({1, 2, 3, 7, 8, 15, 16, 33, 200});
    const int32_t units = random.Pick({1, 5, 16, 17, 63, 64, 65, 150});
    OpTester tester("FULLY_CONNECTED");
    auto& params = tester.params<FullyConnectedParams>();
    params.asymmetric_quantize_inputs = random.Chance(0.5);
    params.activation = RandomClamp(random);
    tester.Input(RandomFloats(random, {rows, depth}, true));
    tester.Input(RandomWeights(random, kI8, {units, depth}, units, random.Chance(0.5)));
    AddFloatBias(random, tester, units);
    if (random.Chance(0.5)) tester.AtRunTime(2);
    AddAffine(random, tester);
    EXPECT_TRUE(tester.Infer().ok());
    EXPECT_TRUE(ReadsWeightsUnpacked(tester.op));
    return tester;
  });
}

TEST(HybridHighwayTest, FewRowsByMatricesOfARunToTheBit) {
  CompareRandomly([](Random& random) {
    const auto rows = static_cast<int32_t>(random.Int(1, 3));
    const int32_t depth = random.Pick({1, 3, 8, 15, 16, 33, 200});
    const int32_t columns = random.Pick({1, 5, 17, 64, 65, 150});
    OpTester tester("BATCH_MATMUL");
    auto& params = tester.params<BatchMatMulParams>();
    params.asymmetric_quantize_inputs = random.Chance(0.5);
    params.adj_x = random.Chance(0.3);
    params.adj_y = true;
    tester.Input(
        RandomFloats(random, params.adj_x ? Shape{3, depth, rows} : Shape{3, rows, depth}, false));
    tester.Input(RandomWeights(random, kI8, {3, columns, depth}, columns, random.Chance(0.3)));
    EXPECT_TRUE(tester.Infer().ok());
    EXPECT_TRUE(ReadsMatricesUnpacked(tester.op, ResolveBatchMatMul(tester.op).value()));
    return tester;
  });
}

TEST(HybridHighwayTest, ConvolutionsToTheBit) {
  CompareRandomly([](Random& random) {
    OpTester tester = RandomHybridConv2D(random, {kI8, kI8, kI4, DataType::kInt2}, true);
    AddAffine(random, tester);
    return tester;
  });
}

TEST(HybridHighwayTest, DepthwiseConvolutionsToTheBit) {
  CompareRandomly([](Random& random) {
    OpTester tester = RandomHybridDepthwise(random, random.Pick({1, 1, 3}));
    AddAffine(random, tester);
    if (random.Chance(0.3)) tester.AtRunTime(1);
    return tester;
  });
}

TEST(HybridHighwayTest, BatchMatMulToTheBit) {
  CompareRandomly([](Random& random) { return RandomHybridBatchMatMul(random, 0.1, false); });
}

}  // namespace
}  // namespace fuselite::kernels::testing
