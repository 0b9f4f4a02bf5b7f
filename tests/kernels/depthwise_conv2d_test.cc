#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include "tests/kernels/product_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

TEST(DepthwiseConv2DReferenceTest, MultiplierAndSamePadding) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  params.stride_w = params.stride_h = 1;
  params.depth_multiplier = 2;
  tester.Input(TestTensor::Of<float>(kF32, {1, 1, 2, 2}, {1, 2, 3, 4}));
  tester.Constant(TestTensor::Of<float>(kF32, {1, 1, 2, 4}, {1, 10, 100, 1000, 2, 20, 200, 2000}));
  tester.Constant(TestTensor::Of<float>(kF32, {4}, {0, 0, 0, 1}));
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{1, 1, 2, 4}));
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].values<float>(),
              ::testing::ElementsAre(7, 70, 1000, 10001, 3, 30, 400, 4001));
}

TEST(DepthwiseConv2DInferTest, Refuses) {
  const auto infer = [](Shape in, Shape filter, int bias, int stride) {
    OpTester tester("DEPTHWISE_CONV_2D");
    auto& params = tester.params<DepthwiseConv2DParams>();
    params.stride_w = params.stride_h = stride;
    tester.Input(TestTensor({.type = kF32, .shape = in}));
    tester.Input(TestTensor({.type = kF32, .shape = filter}));
    tester.Input(TestTensor({.type = kF32, .shape = {bias}}));
    return tester.Infer();
  };
  EXPECT_TRUE(infer({1, 4, 4, 3}, {1, 2, 2, 6}, 6, 1).ok());
  EXPECT_FALSE(infer({1, 4, 4, 3}, {1, 2, 2, 4}, 4, 1).ok()) << "3 does not divide 4";
  EXPECT_FALSE(infer({1, 4, 4, 3}, {2, 2, 2, 3}, 3, 1).ok()) << "two filters";
  EXPECT_FALSE(infer({1, 4, 4, 3}, {1, 2, 2, 3}, 4, 1).ok()) << "bias";
  EXPECT_FALSE(infer({1, 4, 4, 3}, {1, 2, 2, 3}, 3, -1).ok()) << "stride";
  EXPECT_FALSE(infer({1, 4, 4, 0}, {1, 2, 2, 0}, 0, 1).ok()) << "no channels";
}

TEST(DepthwiseConv2DHighwayTest, AgreesWithTheReference) {
  CompareRandomly(
      100, [](Random& random) { return RandomDepthwiseConv2D(random, {}); },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        const int64_t depth = tester.op.inputs[1].shape.elements(1, 3);
        return CompareCandidates(tester, ProductBounds<DepthwiseConv2DParams>(tester, depth),
                                 random);
      });
}

}  // namespace
}  // namespace fuselite::kernels::testing
