#include "kernels/transpose_conv/transpose_conv.h"

#include "tests/kernels/op_tester.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

TEST(TransposeConvReferenceTest, AddsWhereWindowsOverlap) {
  OpTester tester =
      TransposeConvOf({1, 1, 5, 1}, TestTensor::Of<float>(kF32, {1, 1, 3, 1}, {1, 10, 100}),
                      TestTensor::Of<float>(kF32, {1, 1, 2, 1}, {1, 2}), Padding::kValid, 1, 2);
  tester.Constant(TestTensor::Of<float>(kF32, {1}, {0.5f}));
  ASSERT_TRUE(tester.Infer().ok());
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].values<float>(),
              ::testing::ElementsAre(1.5f, 10.5f, 102.5f, 20.5f, 200.5f));
}

TEST(TransposeConvInferTest, Refuses) {
  const auto infer = [](std::vector<int32_t> output, Shape filter, Shape input, int32_t stride) {
    return TransposeConvOf(output, TestTensor({.type = kF32, .shape = filter}),
                           TestTensor({.type = kF32, .shape = input}), Padding::kSame, stride,
                           stride)
        .Infer();
  };
  EXPECT_TRUE(infer({1, 8, 8, 2}, {2, 3, 3, 4}, {1, 4, 4, 4}, 2).ok());
  EXPECT_FALSE(infer({1, 9, 8, 2}, {2, 3, 3, 4}, {1, 4, 4, 4}, 2).ok()) << "9 comes from 5";
  EXPECT_FALSE(infer({1, 8, 8, 3}, {2, 3, 3, 4}, {1, 4, 4, 4}, 2).ok()) << "channels out";
  EXPECT_FALSE(infer({1, 8, 8, 2}, {2, 3, 3, 5}, {1, 4, 4, 4}, 2).ok()) << "channels in";
  EXPECT_FALSE(infer({1, 8, 8, 2}, {2, 3, 3, 4}, {1, 4, 4, 4}, 0).ok()) << "stride";
  EXPECT_FALSE(infer({1, -8, 8, 2}, {2, 3, 3, 4}, {1, 4, 4, 4}, 2).ok()) << "negative";
  OpTester dynamic =
      TransposeConvOf({1, 8, 8, 2}, TestTensor({.type = kF32, .shape = {2, 3, 3, 4}}),
                      TestTensor({.type = kF32, .shape = {1, 4, 4, 4}}), Padding::kSame, 2, 2);
  dynamic.op.inputs[0].data = nullptr;
  EXPECT_EQ(dynamic.Infer().code(), StatusCode::kDynamicShape);
}

TEST(TransposeConvHighwayTest, AgreesWithTheReference) {
  CompareRandomly(
      80, [](Random& random) { return RandomTransposeConv(random); },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        const int64_t depth = tester.op.inputs[1].shape.elements(1, 4);
        return CompareCandidates(tester, ProductBounds<TransposeConvParams>(tester, depth), random);
      });
}

TEST(TransposeConvHighwayTest, IntegersToTheBit) {
  CompareRandomly(
      120,
      [](Random& random) {
        OpTester tester = RandomQuantizedTransposeConv(
            random, {DataType::kInt8, DataType::kUInt8, DataType::kInt16});
        for (size_t i = 1; random.Chance(0.5) && i < tester.op.inputs.size(); ++i) {
          tester.op.inputs[i].data = nullptr;
        }
        return tester;
      },
      [](OpTester& tester, Random& random) {
        return tester.op.outputs[0].type == DataType::kInt16
                   ? CompareToTheBit<int16_t>(tester, random)
                   : CompareToTheBit<uint8_t>(tester, random);
      });
}

TEST(TransposeConvReferenceTest, HybridScalesEveryTerm) {
  // The image spans 0 to 2.55 in steps of 0.01: 0.5 and 2.55 are 50 and 255 of them.
  OpTester tester = TransposeConvOf(
      {1, 1, 4, 1},
      TestTensor::Of<int8_t>(DataType::kInt8, {1, 1, 3, 1}, {1, -10, 100},
                             {.scales = {0.5f}, .zero_points = {0}}),
      TestTensor::Of<float>(kF32, {1, 1, 2, 1}, {0.5f, 2.55f}), Padding::kValid, 1, 1);
  tester.Constant(TestTensor::Of<float>(kF32, {1}, {0.5f}));
  ASSERT_TRUE(tester.Infer().ok());
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  const auto near = [](float x) { return ::testing::FloatNear(x, 1e-5f); };
  EXPECT_THAT((*outputs)[0].values<float>(),
              ::testing::ElementsAre(near(0.75f), near(-0.725f), near(12.75f), near(128.0f)));
}

TEST(TransposeConvInferTest, HybridNeedsAScaleForEachChannel) {
  const auto infer = [](std::vector<float> scales) {
    Quantization q{.scales = std::move(scales), .zero_points = {0}};
    return TransposeConvOf(
               {1, 8, 8, 2},
               TestTensor({.type = DataType::kInt8, .shape = {2, 3, 3, 4}, .quantization = q}),
               TestTensor({.type = kF32, .shape = {1, 4, 4, 4}}), Padding::kSame, 2, 2)
        .Infer();
  };
  EXPECT_TRUE(infer({1, 2}).ok());
  EXPECT_FALSE(infer({1}).ok()) << "TFLite's kernel reads a second one";
}

TEST(TransposeConvHighwayTest, HybridToTheBit) {
  CompareRandomly(
      80, [](Random& random) { return RandomHybridTransposeConv(random); },
      [](OpTester& tester, Random& random) {
        if (random.Chance(0.3)) {
          tester.op.tail.stages = {TailStage::Unary(UnaryKind::kNeg),
                                   TailStage::Unary(UnaryKind::kClamp, -50, 60)};
        }
        return CompareToTheBit<float>(tester, random);
      });
}

}  // namespace
}  // namespace fuselite::kernels::testing
