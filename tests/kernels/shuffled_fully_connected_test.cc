// FULLY_CONNECTED with weights in blocks of 4 x 16.
#include "kernels/fully_connected/fully_connected.h"
#include "tests/kernels/reference_values.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kU8 = DataType::kUInt8, kI32 = DataType::kInt32;

// All of the 4 x 16 weights are 0 but that of unit 1 and column 2, where the input is not 0 either.
TEST(ShuffledFullyConnectedTest, ReadsWeightsInBlocks) {
  OpTester tester("FUSELITE_SHUFFLED_FULLY_CONNECTED");
  tester.params<FullyConnectedParams>().weights_format = kShuffledWeights;
  const auto bytes = [](const Shape& shape, uint8_t all, int at, uint8_t other) {
    std::vector<uint8_t> values(shape.elements(), all);
    values[at] = other;
    return TestTensor::Of<uint8_t>(kU8, shape, values, {{1.0F}, {128}});
  };
  const auto bias = TestTensor::Of<int32_t>(kI32, {4}, {10, 20, 30, 40}, {{1.0F}, {0}});
  tester.Input(bytes({1, 16}, 128, 2, 131)).Constant(bytes({4, 16}, 0, 16 + 2, 2)).Constant(bias);
  tester.Output(DataType::kInt16, {{1.0F}, {0}}).Output(DataType::kUInt8, {{1.0F}, {128}});
  EXPECT_THAT(Values<int16_t>(tester), ElementsAre(10, 26, 30, 40));
}

TEST(ShuffledFullyConnectedTest, VectorsHaveTheBitsOfTheReference) {
  for (int seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto rows = static_cast<int32_t>(random.Pick({1, 4}));
    const auto depth = static_cast<int32_t>(16 * random.Int(1, 20));
    const auto units = static_cast<int32_t>(4 * random.Int(1, random.Chance(0.2) ? 150 : 20));
    const auto bytes = [&](const Shape& shape, float scale) {
      TestTensor tensor({.type = kU8, .shape = shape, .quantization = {{scale}, {128}}},
                        random.Int(0, 3));
      const bool extreme = random.Chance(0.2);
      for (int64_t i = 0; i < shape.elements(); ++i) {
        tensor.at<uint8_t>(i) =
            static_cast<uint8_t>(extreme ? 128 * random.Int(0, 1) : random.Int(0, 255));
      }
      return tensor;
    };
    const float scale = random.Float(0.001F, 0.02F);
    TestTensor bias({.type = kI32, .shape = {units}, .quantization = {{0.5F * scale}, {0}}});
    bias.Fill(random, -5000, 5000);
    OpTester tester("FUSELITE_SHUFFLED_FULLY_CONNECTED");
    tester.params<FullyConnectedParams>().weights_format = kShuffledWeights;
    tester.params<FullyConnectedParams>().activation =
        random.Pick({Activation::kNone, Activation::kRelu});
    tester.Input(bytes({rows, depth}, 0.5F)).Constant(bytes({units, depth}, scale)).Constant(bias);
    tester.Output(DataType::kInt16, {{random.Float(0.001F, 0.1F)}, {0}});
    tester.Output(kU8, {{0.5F}, {128}});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const Isa isa : RunnableIsas()) {
      if (!isa.has_vectors()) continue;
      SCOPED_TRACE(IsaName(isa));
      const auto actual = tester.Run("highway", isa, seed, random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      EXPECT_EQ((*actual)[0].values<int16_t>(), (*expected)[0].values<int16_t>());
      EXPECT_EQ((*actual)[1].values<uint8_t>(), (*expected)[1].values<uint8_t>());
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
