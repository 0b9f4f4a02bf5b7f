#include "kernels/dequantized_sum/dequantized_sum.h"

#include <limits>

#include "tests/kernels/beside_reference.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kU8 = DataType::kUInt8;

Quantization Scaled(float scale, int32_t zero_point) { return {{scale}, {zero_point}}; }

OpTester Sum() {
  OpTester tester("FUSELITE_DEQUANTIZED_SUM");
  for (auto& range : tester.params<DequantizedSumParams>().ranges) {
    range = {DequantizedSumParams::kLowest, DequantizedSumParams::kHighest};
  }
  return tester;
}

TEST(DequantizedSumTest, AddsAndClampsInOrder) {
  OpTester tester = Sum();
  tester.Input(TestTensor::Of<int8_t>(kI8, {4}, {1, 3, -128, 127}, Scaled(0.5f, 1)));
  tester.Input(TestTensor::Of<uint8_t>(kU8, {4}, {100, 101, 102, 255}, Scaled(2, 100)));
  tester.Input(TestTensor::Of<float>(kF32, {4}, {0.25f, -0.25f, 1, 100}));
  tester.params<DequantizedSumParams>().ranges[1] = {0, 6};
  tester.Output(kI8, Scaled(0.5f, -10));
  // 0 + 0 + 1/4, 1 + 2 - 1/4, max(0, -64.5 + 4) + 1, min(6, 63 + 310) + 100; halves go up.
  const Status inferred = tester.Infer();
  ASSERT_TRUE(inferred.ok()) << inferred.ToString();
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].values<int8_t>(), ElementsAre(-9, -4, -8, 127));
}

TEST(DequantizedSumTest, RefusesWhatDoesNotFit) {
  const auto byte = [](Shape shape, Quantization q) {
    return TestTensor({.type = kI8, .shape = shape, .quantization = std::move(q)});
  };
  const Quantization good = Scaled(0.5f, 0);
  const auto refused = [&](const TestTensor& x, const TestTensor& y, const Quantization& out,
                           float low = 0) {
    OpTester tester = Sum();
    tester.params<DequantizedSumParams>().ranges[1] = {low, 1};
    tester.Input(x).Input(y).Output(kI8, out);
    return !tester.Infer().ok();
  };
  const TestTensor x = byte({4}, good);
  EXPECT_FALSE(refused(x, x, good));
  EXPECT_TRUE(refused(x, byte({1}, good), good));
  EXPECT_TRUE(refused(x, byte({4}, {}), good));
  EXPECT_TRUE(refused(x, byte({4}, Scaled(0, 0)), good));
  EXPECT_TRUE(refused(x, byte({4}, Scaled(1, 70000)), good));
  EXPECT_TRUE(refused(x, byte({4}, {{1, 1, 1, 1}, {0, 0, 0, 0}}), good));
  EXPECT_TRUE(refused(x, TestTensor({.type = DataType::kInt32, .shape = {4}}), good));
  EXPECT_TRUE(refused(x, x, {}));
  EXPECT_TRUE(refused(x, x, good, 2));
  EXPECT_TRUE(refused(x, x, good, std::numeric_limits<float>::quiet_NaN()));
}

class DequantizedSumIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(DequantizedSumIsaTest, HighwayHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = Sum();
    const Shape shape{static_cast<int32_t>(random.Pick({1, 2, 5})),
                      static_cast<int32_t>(random.Pick({1, 7, 16, 65, 128, 1024, 1100}))};
    const auto terms = static_cast<int>(random.Int(2, DequantizedSumParams::kMaxTerms));
    // Scales that are powers of two make halves.
    const auto scale = [&] { return static_cast<float>(random.Pick({0.25, 0.5, 0.0371, 1.7})); };
    for (int i = 0; i < terms; ++i) {
      TensorInfo info{.type = random.Pick({kI8, kU8, kF32}), .shape = shape};
      if (info.type != kF32) {
        info.quantization = Scaled(scale(), static_cast<int32_t>(random.Int(-128, 255)));
      }
      TestTensor tensor(info, 4 * random.Int(0, 3));
      tensor.Fill(random, -300, 300);
      tester.Input(tensor);
      if (random.Chance(0.3)) tester.params<DequantizedSumParams>().ranges[i] = {-3.3f, 60};
    }
    tester.Output(random.Pick({kI8, kU8}),
                  Scaled(scale(), static_cast<int32_t>(random.Int(-9, 99))));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    const auto both = RunHighway(tester, GetParam(), seed, random.Int(0, 3));
    if (!both) continue;
    ExpectSame<uint8_t>(both->expected, both->actual, "sum");
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, DequantizedSumIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
