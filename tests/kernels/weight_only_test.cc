#include "kernels/weight_only/weight_only.h"

#include <cstring>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kI4 = DataType::kInt4;
constexpr DataType kF16 = DataType::kFloat16;
constexpr char kName[] = "FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED";

std::vector<float> Reference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>();
}

TEST(WeightOnlyTest, ScalesEachUnitsSumAndAddsItsBias) {
  OpTester tester(kName);
  tester.Input(TestTensor::Of<float>(kF32, {2, 2}, {1, 2, 3, -1}));
  tester.Constant(TestTensor::Of<int8_t>(kI8, {2, 2}, {1, 2, -3, 4}, {{0.5f, 2}, {0, 0}}));
  tester.Constant(TestTensor::Of<float>(kF32, {2}, {10, 20}));
  EXPECT_THAT(Reference(tester), ElementsAre(12.5f, 30, 10.5f, -6));
}

TEST(WeightOnlyTest, OneScaleIsForAllUnits) {
  OpTester tester(kName);
  tester.params<FullyConnectedParams>().activation = Activation::kRelu;
  tester.Input(TestTensor::Of<float>(kF32, {1, 2}, {1, 2}));
  // The low half of a byte is the first weight: 1, 2 and -1, -2.
  tester.Constant(TestTensor({.type = kI4, .shape = {2, 2}, .quantization = {{3}, {0}}}));
  tester.inputs[1].data<uint8_t>()[0] = 0x21;
  tester.inputs[1].data<uint8_t>()[1] = 0xef;
  EXPECT_THAT(Reference(tester), ElementsAre(15, 0));
}

TEST(WeightOnlyTest, HalvesHaveNoScale) {
  OpTester tester(kName);
  tester.Input(TestTensor::Of<float>(kF32, {1, 2}, {1, 2}));
  tester.Constant(TestTensor::Of<uint16_t>(kF16, {1, 2}, {0x3800, 0xc000}));  // 0.5, -2
  EXPECT_THAT(Reference(tester), ElementsAre(-3.5f));
}

TEST(WeightOnlyTest, RefusesOtherWeights) {
  const auto infer = [](Quantization quantization, bool constant, Shape shape = {2, 4}) {
    OpTester tester(kName);
    tester.Input(TestTensor({.type = kF32, .shape = {1, 4}}));
    const TestTensor weights(
        {.type = kI8, .shape = shape, .quantization = std::move(quantization)});
    constant ? tester.Constant(weights) : tester.Input(weights);
    return tester.Infer();
  };
  EXPECT_TRUE(infer({{0.5f}, {0}}, true).ok());
  EXPECT_TRUE(infer({{0.5f, 1}, {0, 0}}, true).ok());
  EXPECT_FALSE(infer({{0.5f}, {0}}, false).ok());
  EXPECT_FALSE(infer({{0.5f}, {1}}, true).ok());
  EXPECT_FALSE(infer({{0.5f, 1}, {0, 1}}, true).ok());
  EXPECT_FALSE(infer({}, true).ok());
  EXPECT_FALSE(infer({{1, 1, 1, 1}, {0, 0, 0, 0}, 1}, true).ok());
  EXPECT_FALSE(infer({{1, 1, 1, 1}, {0, 0, 0, 0}, 1}, true, {4, 4}).ok());
}

// Whether converting weights takes less time than reading floats.
bool Converts(Isa isa) { return isa.has(Feature::kAvx2) || isa.has(Feature::kNeon); }

class WeightOnlyIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(WeightOnlyIsaTest, HighwayAgreesWithReference) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester(kName);
    const auto units = static_cast<int32_t>(random.Pick({1, 3, 16, 31, 63, 64, 65, 130}));
    const auto depth = static_cast<int32_t>(random.Pick({1, 2, 3, 8, 31, 64, 301}));
    tester.params<FullyConnectedParams>().activation =
        random.Pick({Activation::kNone, Activation::kRelu6});
    TestTensor x({.type = kF32, .shape = {1, depth}}, 4 * random.Int(0, 3));
    x.Fill(random, -2, 2);
    tester.Input(x);
    TensorInfo info{.type = random.Pick({kI8, kI4, kF16}), .shape = {units, depth}};
    if (info.type != kF16) {
      std::vector<float> scales(random.Chance(0.5) ? units : 1);
      for (float& scale : scales) scale = random.Float(0.01f, 0.1f);
      const std::vector<int32_t> zeros(scales.size());
      info.quantization = {scales, zeros};
    }
    TestTensor weights(info, random.Int(0, 3));
    if (info.type == kF16) {
      for (int64_t i = 0; i < info.elements(); ++i) {
        // It lies between 1/16 and 2, with either sign.
        const auto bits = static_cast<uint16_t>(random.Int(0x2c00, 0x4000));
        std::memcpy(weights.bytes() + 2 * i, &bits, sizeof bits);
        if (random.Chance(0.5)) weights.bytes()[2 * i + 1] ^= std::byte{0x80};
      }
    } else {
      weights.Fill(random, -128, 127);
    }
    tester.Constant(weights);
    if (random.Chance(0.5)) {
      TestTensor bias({.type = kF32, .shape = {units}});
      bias.Fill(random, -1, 1);
      random.Chance(0.5) ? tester.Input(bias) : tester.Constant(bias);
    }
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    if (random.Chance(0.4)) {
      tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 0.5f, 1));
    }
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    if (!Converts(GetParam())) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectNear((*expected)[0], (*actual)[0], [&](int64_t) { return 2e-3f; }, kName);
  }
}

TEST_P(WeightOnlyIsaTest, SeveralRowsAreNotTaken) {
  OpTester tester(kName);
  tester.Input(TestTensor({.type = kF32, .shape = {2, 4}}));
  tester.Constant(TestTensor({.type = kI8, .shape = {2, 4}, .quantization = {{1}, {0}}}));
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.Run("highway", GetParam()).status().code(), StatusCode::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(Isas, WeightOnlyIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
