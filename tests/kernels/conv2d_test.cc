#include "kernels/conv2d/conv2d.h"

#include "tests/kernels/product_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

std::vector<float> RunFloat(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>{};
}

OpTester Small(Padding padding) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.padding = padding;
  params.stride_w = params.stride_h = 1;
  tester.Input(TestTensor::Of<float>(kF32, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  tester.Constant(TestTensor::Of<float>(kF32, {1, 2, 2, 1}, {1, 10, 100, 1000}));
  return tester;
}

TEST(Conv2DReferenceTest, Valid) {
  OpTester tester = Small(Padding::kValid);
  tester.Constant(TestTensor::Of<float>(kF32, {1}, {0.5f}));
  EXPECT_THAT(RunFloat(tester), ::testing::ElementsAre(5421.5f, 6532.5f, 8754.5f, 9865.5f));
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{1, 2, 2, 1}));
}

TEST(Conv2DReferenceTest, SamePadsWithZeros) {
  OpTester tester = Small(Padding::kSame);
  EXPECT_THAT(RunFloat(tester),
              ::testing::ElementsAre(5421, 6532, 603, 8754, 9865, 906, 87, 98, 9));
}

TEST(Conv2DReferenceTest, ExtraPaddingActivationAndTail) {
  OpTester tester = Small(Padding::kValid);
  tester.params<Conv2DParams>().extra_padding = {.top = 1, .left = 1, .bottom = 0, .right = 0};
  tester.params<Conv2DParams>().activation = Activation::kRelu6;
  tester.inputs[0].at<float>(0) = 0.001f;
  tester.Absent();
  tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kNeg));
  EXPECT_THAT(RunFloat(tester), ::testing::ElementsAre(-1, -6, -6, -6, -6, -6, -6, -6, -6));
}

TEST(Conv2DReferenceTest, Groups) {
  OpTester tester("CONV_2D");
  tester.params<Conv2DParams>().stride_w = tester.params<Conv2DParams>().stride_h = 1;
  tester.Input(TestTensor::Of<float>(kF32, {1, 1, 1, 4}, {1, 2, 3, 4}));
  tester.Constant(TestTensor::Of<float>(kF32, {2, 1, 1, 2}, {1, 10, 1, 10}));
  EXPECT_THAT(RunFloat(tester), ::testing::ElementsAre(21, 43));
}

TEST(Conv2DInferTest, Refuses) {
  const auto infer = [](Shape in, Shape filter, int bias, int stride) {
    OpTester tester("CONV_2D");
    tester.params<Conv2DParams>().stride_w = tester.params<Conv2DParams>().stride_h = stride;
    tester.Input(TestTensor({.type = kF32, .shape = in}));
    tester.Input(TestTensor({.type = kF32, .shape = filter}));
    tester.Input(TestTensor({.type = kF32, .shape = {bias}}));
    return tester.Infer();
  };
  EXPECT_TRUE(infer({1, 4, 4, 6}, {4, 1, 1, 3}, 4, 1).ok());
  EXPECT_FALSE(infer({1, 4, 4, 6}, {4, 1, 1, 4}, 4, 1).ok()) << "4 does not divide 6";
  EXPECT_FALSE(infer({1, 4, 4, 6}, {3, 1, 1, 3}, 3, 1).ok()) << "3 filters, 2 groups";
  EXPECT_FALSE(infer({1, 4, 4, 6}, {4, 1, 1, 6}, 3, 1).ok()) << "bias";
  EXPECT_FALSE(infer({1, 4, 4, 6}, {4, 1, 1, 6}, 4, 0).ok()) << "stride";
  EXPECT_FALSE(infer({4, 4, 6}, {4, 1, 1, 6}, 4, 1).ok()) << "rank";
  EXPECT_FALSE(infer({1, 4, 4, 6}, {4, 0, 1, 6}, 4, 1).ok()) << "empty filter";
}

TEST(Conv2DHighwayTest, AgreesWithTheReference) {
  CompareRandomly(
      60, [](Random& random) { return RandomConv2D(random, {}); },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        const int64_t depth = tester.op.inputs[1].shape.elements(1, 4);
        return CompareCandidates(tester, ProductBounds<Conv2DParams>(tester, depth), random);
      });
}

// Channels of which the sums with several pixels are computed at once.
TEST(Conv2DHighwayTest, FewChannelsOfPixelsAgreeWithTheReference) {
  CompareRandomly(
      100,
      [](Random& random) {
        OpTester tester("CONV_2D");
        auto& params = tester.params<Conv2DParams>();
        params.padding = random.Pick({Padding::kSame, Padding::kValid});
        params.stride_h = params.stride_w = random.Chance(0.9) ? 1 : 2;
        params.dilation_h = params.dilation_w = 1;
        params.activation = random.Pick({Activation::kNone, Activation::kRelu6});
        const int32_t depth = random.Pick({15, 16, 17, 63, 64, 65, 130});
        const auto channels = static_cast<int32_t>(random.Int(1, 3));
        const auto side = static_cast<int32_t>(random.Int(1, 12));
        tester.Input(RandomFloats(random, {2, side, side + 1, depth}, RandomPitch(random, depth)));
        AddWeights(tester, random, {channels, 1, 1, depth}, channels,
                   {.run_time_weights = random.Chance(0.3)});
        return tester;
      },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        const int64_t depth = tester.op.inputs[1].shape.dim(-1);
        return CompareCandidates(tester, ProductBounds<Conv2DParams>(tester, depth), random);
      });
}

}  // namespace
}  // namespace fuselite::kernels::testing
