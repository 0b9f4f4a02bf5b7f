// The operators that only rewrites make: chains and layer normalization. (Attention has a file of
// its own.)
#include "tests/kernels/composites.h"
#include "kernels/layer_norm/layer_norm.h"

namespace fuselite::kernels::testing {
namespace {

TEST_P(CompositesTest, ChainRunsItsTail) {
  OpTester tester("FUSELITE_ELEMENTWISE");
  tester.Input(TestTensor::Of<float>(kF32, {2, 3}, {-1, 2, 3, -4, 5, 6}));
  tester.Input(TestTensor::Of<float>(kF32, {3}, {10, 20, 30}));
  tester.op.tail.stages = {TailStage::Unary(UnaryKind::kClamp, 0, 5),
                           TailStage::Binary(BinaryKind::kMul, {.input = 1, .channel_stride = 1})};
  tester.op.tail_inputs = 1;
  ASSERT_TRUE(tester.Infer().ok());
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok());
  EXPECT_THAT((*expected)[0].values<float>(), ::testing::ElementsAre(0, 40, 90, 0, 100, 150));
  Compare(tester, (*expected)[0], 0);
}

TEST_P(CompositesTest, ChainWithoutStagesCopies) {
  OpTester tester("FUSELITE_ELEMENTWISE");
  tester.Input(TestTensor::Of<int8_t>(DataType::kInt8, {5}, {-128, -1, 0, 1, 127}));
  ASSERT_TRUE(tester.Infer().ok());
  for (const char* candidate : {"reference", "highway"}) {
    const auto actual = tester.Run(candidate, GetParam());
    if (!actual.ok()) continue;
    EXPECT_EQ((*actual)[0].values<int8_t>(), tester.inputs[0].values<int8_t>());
  }
}

TEST_P(CompositesTest, LayerNorm) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto channels = static_cast<int32_t>(random.Pick({1, 2, 5, 16, 33, 192, 1000}));
    OpTester tester("FUSELITE_LAYER_NORM");
    tester.params<LayerNormParams>().epsilon = 1e-3f;
    const bool keeps_mean = tester.params<LayerNormParams>().keeps_mean = random.Chance(0.4);
    tester.Input(RandomTensor(random, {2, 3, channels}, random.Pick({0.5f, 8.0f})));
    const bool gamma = random.Chance(0.7), beta = random.Chance(0.7);
    gamma ? tester.Input(RandomTensor(random, {channels}, 2)) : tester.Absent();
    if (beta) tester.Input(RandomTensor(random, {channels}, 2));
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const TestTensor& x = tester.inputs[0];
    for (int64_t r = 0; r < 6; ++r) {
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < channels && !keeps_mean; ++c) {
        mean += x.at<float>(r * channels + c) / channels;
      }
      for (int64_t c = 0; c < channels; ++c) {
        variance += std::pow(x.at<float>(r * channels + c) - mean, 2) / channels;
      }
      for (int64_t c = 0; c < channels; ++c) {
        double y = (x.at<float>(r * channels + c) - mean) / std::sqrt(variance + 1e-3);
        if (gamma) y *= tester.inputs[1].at<float>(c);
        if (beta) y += tester.inputs[2].at<float>(c);
        ASSERT_NEAR((*expected)[0].at<float>(r * channels + c), y, 2e-5);
      }
    }
    Compare(tester, (*expected)[0], 1e-5f);
  }
}

// A decoder's rows are quantized next, so that not a bit may differ from MUL, MEAN, ADD, RSQRT and
// MUL as LiteRT has them.
TEST_P(CompositesTest, RmsNormRoundsAsItsOperatorsDo) {
  if (!HasVectors(GetParam())) return;
  for (const int32_t rows : {1, 2, 7}) {
    for (const int32_t channels : {1, 5, 8, 20, 512, 641}) {
      Random random(channels);
      OpTester tester("FUSELITE_LAYER_NORM");
      tester.params<LayerNormParams>() = {.epsilon = 1e-5f, .keeps_mean = true};
      tester.Input(RandomTensor(random, {rows, channels}, 3));
      tester.Input(RandomTensor(random, {channels}, 2));
      ASSERT_TRUE(tester.Infer().ok());
      const auto actual = tester.Run("highway", GetParam(), 3, 1);
      ASSERT_TRUE(actual.ok());
      for (int32_t r = 0; r < rows; ++r) {
        const auto x = [&](int32_t c) { return tester.inputs[0].at<float>(r * channels + c); };
        float sums[8] = {};
        const int32_t in_eights = rows > 1 ? channels / 8 * 8 : 0;
        int32_t c = 0;
        for (; c < in_eights; ++c) sums[c % 8] += x(c) * x(c);
        for (const int half : {4, 2, 1}) {
          for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
        }
        float sum = sums[0];
        for (; c < channels; ++c) sum += x(c) * x(c);
        const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(channels) + 1e-5f);
        for (c = 0; c < channels; ++c) {
          ASSERT_EQ((*actual)[0].at<float>(r * channels + c),
                    x(c) * inverse * tester.inputs[1].at<float>(c))
              << rows << " rows of " << channels << ", " << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, CompositesTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
