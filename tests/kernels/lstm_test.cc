// LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM in float32 and in the hybrid form: outputs, and the states
// that runs leave.
#include "tests/kernels/lstm_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

// Every weight and state its input's number / 10, x[t] = t + 1.
TestTensor Numbered(int input, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()), static_cast<float>(input) / 10);
  for (size_t i = 0; input == kLstmX && i < values.size(); ++i) values[i] = i + 1.0f;
  return TestTensor::Of<float>(kF32, shape, values);
}

TEST(LstmTest, OneCellOverTwoSteps) {
  OpTester tester = MakeLstm({.steps = 2}, Numbered);
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{1, 2, 1}));
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  float h = 1.8f, c = 1.9f;
  for (int t = 0; t < 2; ++t) {
    const float x = t + 1.0f;
    const float i = Logistic(0.1f * x + 0.5f * h + 1.2f);
    const float f = Logistic(0.2f * x + 0.6f * h + 1.3f);
    const float g = std::tanh(0.3f * x + 0.7f * h + 1.4f);
    const float o = Logistic(0.4f * x + 0.8f * h + 1.5f);
    c = f * c + i * g;
    h = o * std::tanh(c);
    EXPECT_NEAR((*outputs)[0].at<float>(t), h, 1e-6f) << t;
  }
  EXPECT_NEAR(tester.inputs[kLstmOutputState].at<float>(0), h, 1e-6f);
  EXPECT_NEAR(tester.inputs[kLstmCellState].at<float>(0), c, 1e-6f);
}

TEST(LstmTest, CoupledGatesPeepholesProjectionAndClips) {
  const LstmCase one = {.sequence = false,
                        .coupled = true,
                        .peephole = true,
                        .projection = true,
                        .projection_bias = true,
                        .activation = Activation::kRelu,
                        .cell_clip = 2.0f,
                        .proj_clip = 3.0f};
  OpTester tester = MakeLstm(one, Numbered);
  ASSERT_TRUE(tester.Infer().ok());
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  const float h = 1.8f, c = 1.9f;
  const float f = Logistic(0.2f + 0.6f * h + 1.0f * c + 1.3f);
  const float g = 0.3f + 0.7f * h + 1.4f;
  const float c2 = std::min(f * c + (1 - f) * g, 2.0f);
  const float o = Logistic(0.4f + 0.8f * h + 1.1f * c2 + 1.5f);
  EXPECT_NEAR(tester.inputs[kLstmCellState].at<float>(0), c2, 1e-6f);
  EXPECT_NEAR((*outputs)[0].at<float>(0), std::min(1.6f * o * c2 + 1.7f, 3.0f), 1e-6f);
}

// Two cells whose sums differ: -1 and 1 after normalization, whatever the sums.
TEST(LstmTest, LayerNormalizationComesBeforeTheBias) {
  const auto make = [](int input, const Shape& shape) {
    TestTensor tensor = Numbered(input, shape);
    if (input >= kLstmInputWeights && input < kLstmRecurrentWeights) tensor.at<float>(1) += 5;
    return tensor;
  };
  OpTester tester = MakeLstm({.layer_norm = true, .cells = 2, .outputs = 2}, make);
  ASSERT_TRUE(tester.Infer().ok());
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  for (int i = 0; i < 2; ++i) {
    const float side = i == 0 ? -1.0f : 1.0f;
    const float c = Logistic(2.1f * side + 1.3f) * 1.9f +
                    Logistic(2.0f * side + 1.2f) * std::tanh(2.2f * side + 1.4f);
    EXPECT_NEAR(tester.inputs[kLstmCellState].at<float>(i), c, 1e-5f);
    EXPECT_NEAR((*outputs)[0].at<float>(i), Logistic(2.3f * side + 1.5f) * std::tanh(c), 1e-5f);
  }
}

TEST(LstmTest, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const LstmCase& c, int input, TestTensor replacement, bool constant) {
    OpTester tester = MakeLstm(c, Numbered);
    tester.op.inputs[input] = replacement.info();
    if (constant) tester.op.inputs[input].data = replacement.bytes();
    return tester.Infer().message();
  };
  using ::testing::HasSubstr;
  const TestTensor wide({.type = kF32, .shape = {1, 3}});
  EXPECT_THAT(refusal({}, 18, Numbered(18, {1, 1}), true), HasSubstr("output state is a constant"));
  EXPECT_THAT(refusal({}, 19, wide, false), HasSubstr("cell state has 3 elements, expected 1"));
  EXPECT_THAT(refusal({}, 7, wide, true), HasSubstr("cell gate's recurrent weights have shape"));
  EXPECT_THAT(refusal({}, 2, TestTensor(), false), HasSubstr("no forget gate's input weights"));
  EXPECT_THAT(refusal({}, 1, TestTensor(), false),
              HasSubstr("input gate's recurrent weights, but"));
  EXPECT_THAT(refusal({.peephole = true}, 11, TestTensor(), false), HasSubstr("peephole"));
  EXPECT_THAT(refusal({.projection = true, .projection_bias = true}, 16, TestTensor(), false),
              HasSubstr("projection bias"));
  EXPECT_THAT(refusal({.cells = 2, .outputs = 1}, 0, Numbered(0, {1, 1, 1}), false),
              HasSubstr("no projection"));
  EXPECT_THAT(refusal({.cell_clip = -1}, 0, Numbered(0, {1, 1, 1}), false), HasSubstr("negative"));
  OpTester diagonal = MakeLstm({}, Numbered);
  diagonal.params<LstmParams>().diagonal_recurrent_tensors = true;
  EXPECT_EQ(diagonal.Infer().code(), StatusCode::kUnsupported);
}

TEST(LstmTest, HybridQuantizesEachStep) {
  // Steps of 1 for x = 127 and of 1/127 for h = 1, so that nothing is rounded but the second step's
  // state.
  OpTester tester = MakeLstm({.steps = 2}, [](int input, const Shape& shape) {
    if (IsWeights(input)) {
      return TestTensor::Of<int8_t>(DataType::kInt8, shape, {static_cast<int8_t>(input)},
                                    {.scales = {0x1p-10f}, .zero_points = {0}});
    }
    if (input == kLstmX) return TestTensor::Of<float>(kF32, shape, {127, -127});
    return TestTensor::Of<float>(kF32, shape, {1});
  });
  ASSERT_TRUE(tester.Infer().ok());
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  float h = 1, c = 1;
  for (int t = 0; t < 2; ++t) {
    const float x = t == 0 ? 127.0f : -127.0f;
    const auto sum = [&](int gate) { return 1 + ((gate + 1) * x + (gate + 5) * h) / 1024; };
    c = Logistic(sum(1)) * c + Logistic(sum(0)) * std::tanh(sum(2));
    h = Logistic(sum(3)) * std::tanh(c);
    EXPECT_NEAR((*outputs)[0].at<float>(t), h, 1e-5f) << t;
  }
  OpTester several = tester;
  several.op.inputs[kLstmInputWeights].quantization = {{1, 2}, {0, 0}};
  EXPECT_THAT(several.Infer().message(), ::testing::HasSubstr("single finite scale"));
}

class LstmIsaTest : public ::testing::TestWithParam<Isa> {};

// Small weights: differences must not grow from step to step.
TestTensor RandomInput(Random& random, int input, const Shape& shape, bool hybrid) {
  if (hybrid && IsWeights(input)) {
    TestTensor tensor({.type = DataType::kInt8,
                       .shape = shape,
                       .quantization = {{0.2f / random.Int(110, 127)}, {0}}});
    tensor.Fill(random, -127, 127);
    return tensor;
  }
  TestTensor tensor({.type = kF32, .shape = shape}, 4 * random.Int(0, 3));
  const float magnitude = input == kLstmX ? 1.0f : 0.2f;
  tensor.Fill(random, -magnitude, magnitude);
  return tensor;
}

void CompareLstm(Isa isa, bool hybrid) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const LstmCase c = RandomLstmCase(random);
    OpTester plain = MakeLstm(c, [&](int input, const Shape& shape) {
      return RandomInput(random, input, shape, hybrid);
    });
    plain.params<LstmParams>().asymmetric_quantize_inputs = hybrid && random.Chance(0.5);
    OpTester reference = plain, fast = plain;
    const auto expected =
        RunLstm(plain, reference, "reference", Isa::kScalar, seed, random.Int(0, 3));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = RunLstm(plain, fast, "highway", isa, seed, random.Int(0, 3));
    if (!isa.has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    // A normalization divides by the spread of the sums, which may be small.
    // A last bit more or less may round a quantized value to the next step, a 127th of its range.
    const auto tolerance = [&](int64_t) {
      return hybrid ? (c.layer_norm ? 2e-2f : 5e-3f) : c.layer_norm ? 5e-4f : 1e-5f;
    };
    ExpectNear((*expected)[0], (*actual)[0], tolerance, "output");
    for (int i : {kLstmOutputState, kLstmCellState}) {
      ExpectNear(reference.inputs[i], fast.inputs[i], tolerance, "state");
      fast.inputs[i].CheckGuards("state");
    }
  }
}

TEST_P(LstmIsaTest, HighwayAgreesWithReference) { CompareLstm(GetParam(), false); }
TEST_P(LstmIsaTest, HybridHighwayAgreesWithReference) { CompareLstm(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Isas, LstmIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
