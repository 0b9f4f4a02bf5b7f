// LSTM in int8 with an int16 cell state.
#include "tests/kernels/lstm_cases.h"

namespace fuselite::kernels::testing {
namespace {

// One cell in int8; x, h and weights of scale 1/64 multiply to sums of scale 2^-12.
OpTester IntegerTester(bool coupled, float cell_clip) {
  OpTester tester("LSTM");
  tester.params<LstmParams>().cell_clip = cell_clip;
  const auto add = [&](DataType type, const auto& values, const Shape& shape, float scale, int zero,
                       bool constant) {
    const TestTensor tensor =
        TestTensor::Of(type, shape, values, {.scales = {scale}, .zero_points = {zero}});
    constant ? tester.Constant(tensor) : tester.Input(tensor);
  };
  constexpr float kSmall = 1.0f / 64;
  add(DataType::kInt8, std::vector<int8_t>{74}, {1, 1}, kSmall, 10, false);  // 1
  for (int i = 1; i < 9; ++i) {
    if (coupled && i % 4 == 1) {
      tester.Absent();
    } else {
      add(DataType::kInt8, std::vector<int8_t>{static_cast<int8_t>(8 * i)}, {1, 1}, kSmall, 0,
          true);
    }
  }
  for (int i = 0; i < 3; ++i) tester.Absent();
  for (int i = 0; i < 4; ++i) {
    if (coupled && i == 0) {
      tester.Absent();
    } else {
      add(DataType::kInt32, std::vector<int32_t>{1024 * i}, {1}, 0x1p-12f, 0, true);
    }
  }
  tester.Absent().Absent();
  add(DataType::kInt8, std::vector<int8_t>{42}, {1, 1}, kSmall, 10, false);       // 0.5
  add(DataType::kInt16, std::vector<int16_t>{8192}, {1, 1}, 0x1p-12f, 0, false);  // 2
  tester.Output(DataType::kInt8, {{1.0f / 128}, {-3}});
  tester.op.intermediates.resize(5);
  tester.op.intermediates[4] = {.scales = {1.0f / 128}, .zero_points = {-3}};
  return tester;
}

TEST(IntegerLstmTest, FollowsTheRealFormula) {
  for (const bool coupled : {false, true}) {
    for (const float clip : {0.0f, 1.5f}) {
      OpTester tester = IntegerTester(coupled, clip);
      const Status inferred = tester.Infer();
      ASSERT_TRUE(inferred.ok()) << inferred.ToString();
      const auto outputs = tester.Run("reference", Isa::kScalar);
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      const auto sum = [](int gate) {
        return 8.0f * (gate + 1) / 64 + 8.0f * (gate + 5) / 64 * 0.5f + gate * 0.25f;
      };
      const float f = Logistic(sum(1));
      float c = f * 2 + (coupled ? 1 - f : Logistic(sum(0))) * std::tanh(sum(2));
      if (clip > 0) c = std::min(c, clip);
      const float h = Logistic(sum(3)) * std::tanh(c);
      EXPECT_NEAR(tester.inputs[kLstmCellState].at<int16_t>(0), c * 4096, 4);
      EXPECT_NEAR((*outputs)[0].at<int8_t>(0), h * 128 - 3, 1);
      EXPECT_EQ(tester.inputs[kLstmOutputState].at<int8_t>(0), (*outputs)[0].at<int8_t>(0));
    }
  }
}

TEST(IntegerLstmTest, NeedsTheQuantizationThatItUses) {
  OpTester hidden = IntegerTester(false, 0);
  hidden.op.intermediates.clear();
  EXPECT_THAT(hidden.Infer().message(), ::testing::HasSubstr("0 intermediate values"));
  OpTester cell = IntegerTester(false, 0);
  cell.op.inputs[kLstmCellState].quantization.scales = {0.001f};
  EXPECT_THAT(cell.Infer().message(), ::testing::HasSubstr("power of two"));
  OpTester weights = IntegerTester(false, 0);
  weights.op.inputs[kLstmInputWeights].quantization = {};
  EXPECT_THAT(weights.Infer().message(), ::testing::HasSubstr("no single scale"));
}

class IntegerLstmIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(IntegerLstmIsaTest, HighwayEqualsTheReference) {
  if (!GetParam().has_vectors()) return;  // the reference runs
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const OpTester plain = RandomIntegerLstm(random);
    OpTester reference = plain, fast = plain;
    const auto expected =
        RunLstm(plain, reference, "reference", Isa::kScalar, seed, random.Int(0, 3));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = RunLstm(plain, fast, "highway", GetParam(), seed, random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<int8_t>((*expected)[0], (*actual)[0], "output");
    ExpectSame<int8_t>(reference.inputs[kLstmOutputState], fast.inputs[kLstmOutputState], "state");
    ExpectSame<int16_t>(reference.inputs[kLstmCellState], fast.inputs[kLstmCellState], "cell");
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, IntegerLstmIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
