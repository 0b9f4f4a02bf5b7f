#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include "tests/kernels/float_cases.h"
#include "tests/kernels/op_tester.h"

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

OpTester RandomDepthwise(Random& random) {
  OpTester tester("DEPTHWISE_CONV_2D");
  auto& params = tester.params<DepthwiseConv2DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_h = random.Int(1, 3);
  params.stride_w = random.Int(1, 3);
  params.dilation_h = random.Pick({1, 1, 2});
  params.dilation_w = random.Pick({1, 1, 2});
  params.activation = random.Pick({Activation::kNone, Activation::kRelu6, Activation::kTanh});
  if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
  params.depth_multiplier = random.Pick({1, 1, 1, 2, 5});
  const int32_t channels = random.Int(1, 70), out = channels * params.depth_multiplier;
  const int32_t filter_h = random.Int(1, 5), filter_w = random.Pick({1, 2, 3, 3, 4, 5, 5});
  const TestTensor input(
      {.type = kF32,
       .shape = {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(9, 17)),
                 static_cast<int32_t>(random.Int(9, 25)), channels},
       .row_pitch = random.Chance(0.3) ? channels + random.Int(1, 9) : 0},
      4 * random.Int(0, 3));
  const TestTensor filter({.type = kF32, .shape = {1, filter_h, filter_w, out}},
                          4 * random.Int(0, 3));
  input.Fill(random, -1, 1);
  filter.Fill(random, -1, 1);
  tester.Input(input);
  random.Chance(0.7) ? tester.Constant(filter) : tester.Input(filter);
  if (random.Chance(0.7)) {
    const TestTensor bias({.type = kF32, .shape = {out}}, 4);
    bias.Fill(random, -1, 1);
    tester.Input(bias);
  }
  return tester;
}

TEST(DepthwiseConv2DHighwayTest, AgreesWithTheReference) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomDepthwise(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddRandomTail(tester, random);
    if (random.Chance(0.3)) {
      tester.op.outputs[0].row_pitch = tester.op.outputs[0].shape.dim(-1) + random.Int(1, 9);
    }
    const Shape& filter = tester.op.inputs[1].shape;
    const auto bounds = Bounds(tester, filter.elements(1, 3), [](OpTester& plain) {
      plain.params<DepthwiseConv2DParams>().activation = Activation::kNone;
    });
    runs += CompareCandidates(tester, bounds, random);
    if (HasFailure()) return;
  }
  EXPECT_GT(runs, RunnableIsas().size() > 1 ? 0 : -1);
}

}  // namespace
}  // namespace fuselite::kernels::testing
