#include "kernels/unpool/unpool.h"

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

OpTester Tester(std::string_view name, const UnpoolParams& params,
                const std::vector<TestTensor>& inputs) {
  OpTester tester(name);
  tester.params<UnpoolParams>() = params;
  for (const TestTensor& input : inputs) tester.Input(input);
  const int outputs = name == "MaxUnpooling2D" ? 1 : 2;
  for (int i = 0; i < outputs; ++i) tester.Output(kF32);
  EXPECT_TRUE(tester.Infer().ok());
  return tester;
}

TestTensor Image(Random& random, const Shape& shape, double low, double high) {
  TestTensor image({.type = kF32, .shape = shape}, 4 * random.Int(0, 3));
  image.Fill(random, low, high);
  return image;
}

UnpoolParams Params(int stride, int width, int height, Padding padding) {
  return {.padding = padding,
          .stride_w = stride,
          .stride_h = stride,
          .filter_width = width,
          .filter_height = height,
          .activation = Activation::kNone};
}

std::vector<TestTensor> Expected(const OpTester& tester) {
  auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return *std::move(outputs);
}

void ExpectSameOnEveryIsa(const OpTester& tester, const std::vector<TestTensor>& expected,
                          uint64_t seed) {
  for (const Isa isa : RunnableIsas()) {
    SCOPED_TRACE(IsaName(isa));
    const auto actual = tester.Run("highway", isa, seed);
    ASSERT_EQ(actual.ok(), isa.has_vectors()) << actual.status().ToString();
    for (size_t i = 0; actual.ok() && i < expected.size(); ++i) {
      EXPECT_EQ((*actual)[i].values<float>(), expected[i].values<float>()) << "output " << i;
    }
  }
}

// Coarse values, so that windows have several largest ones.
TEST(UnpoolTest, HighwayHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int width = static_cast<int>(random.Int(1, 4)),
              height = static_cast<int>(random.Int(1, 4));
    const auto size = [&](int least) { return static_cast<int32_t>(random.Int(least, 12)); };
    const Shape shape{static_cast<int32_t>(random.Int(1, 2)), size(height), size(width),
                      static_cast<int32_t>(random.Int(1, 40))};
    UnpoolParams params = Params(static_cast<int>(random.Int(1, 3)), width, height,
                                 random.Pick({Padding::kSame, Padding::kValid}));
    params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
    TestTensor image = Image(random, shape, -9, 9);
    for (int64_t i = 0; i < shape.elements(); ++i)
      image.at<float>(i) = std::floor(image.at<float>(i));
    const OpTester pool = Tester("MaxPoolingWithArgmax2D", params, {image});
    const std::vector<TestTensor> pooled = Expected(pool);
    ExpectSameOnEveryIsa(pool, pooled, seed);

    params.stride_w = width;
    params.stride_h = height;
    const OpTester back = Tester("MaxUnpooling2D", params, pooled);
    ExpectSameOnEveryIsa(back, Expected(back), seed);
  }
}

TEST(UnpoolTest, RefusesTapsOutsideOfTheirWindow) {
  for (const float tap : {-1.0f, 4.0f, std::nanf("")}) {
    Random random(1);
    TestTensor taps = Image(random, {1, 2, 3, 20}, 0, 3.9);
    taps.at<float>(77) = tap;
    const OpTester tester = Tester("MaxUnpooling2D", Params(2, 2, 2, Padding::kValid),
                                   {Image(random, {1, 2, 3, 20}, -1, 1), taps});
    for (const Isa isa : RunnableIsas()) {
      if (!isa.has_vectors()) continue;
      EXPECT_EQ(tester.Run("highway", isa).status().code(), StatusCode::kInvalidArgument);
    }
    EXPECT_EQ(tester.Run("reference", Isa::kScalar).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(UnpoolTest, WindowsThatMeetAreTheReferences) {
  Random random(1);
  const TestTensor taps = Image(random, {1, 4, 4, 3}, 0, 0.9);
  const OpTester tester = Tester("MaxUnpooling2D", Params(1, 2, 2, Padding::kSame),
                                 {Image(random, {1, 4, 4, 3}, -1, 1), taps});
  EXPECT_EQ(tester.Run("highway", Isa::kAvx2).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace fuselite::kernels::testing
