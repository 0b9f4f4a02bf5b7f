// LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM: outputs, and the states that runs leave.
#include "kernels/lstm/lstm.h"

#include "kernels/lstm/fixed_point16.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

float Logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

struct LstmCase {
  bool sequence = true, time_major = false, coupled = false, peephole = false, projection = false,
       projection_bias = false, layer_norm = false;
  int32_t steps = 1, batch = 1, inputs = 1, cells = 1, outputs = 1;
  Activation activation = Activation::kTanh;
  float cell_clip = 0, proj_clip = 0;
};

// All 24 inputs, from `value(input)`; a state is a run-time value, all else but x is constant.
template <class Make>
OpTester MakeTester(const LstmCase& c, Make make) {
  OpTester tester(c.sequence ? "UNIDIRECTIONAL_SEQUENCE_LSTM" : "LSTM");
  auto& params = tester.params<LstmParams>();
  params.activation = c.activation;
  params.cell_clip = c.cell_clip;
  params.proj_clip = c.proj_clip;
  params.time_major = c.time_major;
  const auto constant = [&](bool there, int input, const Shape& shape) {
    there ? tester.Constant(make(input, shape)) : tester.Absent();
  };
  const Shape sequence =
      c.time_major ? Shape{c.steps, c.batch, c.inputs} : Shape{c.batch, c.steps, c.inputs};
  tester.Input(make(kLstmX, c.sequence ? sequence : Shape{c.batch, c.inputs}));
  for (int i = 1; i < 9; ++i) {
    const bool input_gate = i == kLstmInputWeights || i == kLstmRecurrentWeights;
    constant(!(c.coupled && input_gate), i, {c.cells, i < 5 ? c.inputs : c.outputs});
  }
  for (int i = 0; i < 3; ++i) {
    constant(c.peephole && !(c.coupled && i == 0), kLstmPeephole + i, {c.cells});
  }
  for (int i = 0; i < 4; ++i) constant(!(c.coupled && i == 0), kLstmBias + i, {c.cells});
  constant(c.projection, kLstmProjection, {c.outputs, c.cells});
  constant(c.projection_bias, kLstmProjectionBias, {c.outputs});
  tester.Input(make(kLstmOutputState, {c.batch, c.outputs}));
  tester.Input(make(kLstmCellState, {c.batch, c.cells}));
  for (int i = 0; i < 4; ++i) {
    constant(c.layer_norm && !(c.coupled && i == 0), kLstmLayerNorm + i, {c.cells});
  }
  return tester;
}

// What is int8 in the hybrid form.
bool IsWeights(int input) {
  return (input >= kLstmInputWeights && input < kLstmBias) || input == kLstmProjection;
}

// Every weight and state its input's number / 10, x[t] = t + 1.
TestTensor Numbered(int input, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()), static_cast<float>(input) / 10);
  for (size_t i = 0; input == kLstmX && i < values.size(); ++i) values[i] = i + 1.0f;
  return TestTensor::Of<float>(kF32, shape, values);
}

TEST(LstmTest, OneCellOverTwoSteps) {
  OpTester tester = MakeTester({.steps = 2}, Numbered);
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
  OpTester tester = MakeTester(one, Numbered);
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
  OpTester tester = MakeTester({.layer_norm = true, .cells = 2, .outputs = 2}, make);
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
    OpTester tester = MakeTester(c, Numbered);
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
  OpTester diagonal = MakeTester({}, Numbered);
  diagonal.params<LstmParams>().diagonal_recurrent_tensors = true;
  EXPECT_EQ(diagonal.Infer().code(), StatusCode::kUnsupported);
}

TEST(FixedPoint16Test, LogisticAndTanhAreWithinTheirPrecision) {
  for (int x = -32768; x <= 32767; x += 7) {
    const auto raw = static_cast<int16_t>(x);
    ASSERT_NEAR(LogisticQ12(raw), std::min(32768.0 / (1 + std::exp(-x / 4096.0)), 32767.0), 10)
        << x;
    for (int bits = 0; bits <= 6; ++bits) {
      const double exact = std::tanh(std::ldexp(x, bits - 15)) * 32768;
      ASSERT_NEAR(TanhFixed(raw, bits), std::min(exact, 32767.0), 24) << x << " " << bits;
    }
  }
  EXPECT_EQ(LogisticQ12(0), 16384);
  EXPECT_EQ(TanhFixed(0, 3), 0);
}

TEST(LstmTest, HybridQuantizesEachStep) {
  // Steps of 1 for x = 127 and of 1/127 for h = 1, so that nothing is rounded but the second step's
  // state.
  OpTester tester = MakeTester({.steps = 2}, [](int input, const Shape& shape) {
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

TEST(FixedPoint16Test, RowsEqualTheScalarFunctions) {
  std::vector<int16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<int16_t>(i - 32768);
  for (Isa isa : RunnableIsas()) {
    const FixedPoint16Rows* rows = FindFixedPoint16Rows(isa);
    if (rows == nullptr) continue;
    SCOPED_TRACE(IsaName(isa));
    std::vector<int16_t> values = all;
    rows->logistic_q12(values.data(), 65535);  // not a multiple of the vectors
    for (int i = 0; i < 65535; ++i) ASSERT_EQ(values[i], LogisticQ12(all[i])) << all[i];
    EXPECT_EQ(values.back(), 32767) << "beyond the row";
    for (int bits = 0; bits <= 6; ++bits) {
      values = all;
      rows->tanh_fixed(values.data(), 65536, bits);
      for (int i = 0; i < 65536; ++i) ASSERT_EQ(values[i], TanhFixed(all[i], bits)) << all[i];
    }
  }
}

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
  tester.op.intermediates.resize(5);
  tester.op.intermediates[4] = {.scales = {1.0f / 128}, .zero_points = {-3}};
  return tester;
}

TEST(LstmTest, Int8FollowsTheRealFormula) {
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

TEST(LstmTest, Int8NeedsTheQuantizationThatItUses) {
  OpTester hidden = IntegerTester(false, 0);
  hidden.op.intermediates.clear();
  EXPECT_THAT(hidden.Infer().message(), ::testing::HasSubstr("hidden value"));
  OpTester cell = IntegerTester(false, 0);
  cell.op.inputs[kLstmCellState].quantization.scales = {0.001f};
  EXPECT_THAT(cell.Infer().message(), ::testing::HasSubstr("power of two"));
  OpTester weights = IntegerTester(false, 0);
  weights.op.inputs[kLstmInputWeights].quantization = {};
  EXPECT_THAT(weights.Infer().message(), ::testing::HasSubstr("no single scale"));
}

// Operands of the int8 form; sums of products have scales around 2^-12.
TestTensor RandomIntegerInput(Random& random, int input, const Shape& shape) {
  const auto fill = [&](DataType type, float scale, int32_t zero_point, int low, int high) {
    TestTensor tensor({.type = type, .shape = shape, .quantization = {{scale}, {zero_point}}},
                      4 * random.Int(0, 3));
    tensor.Fill(random, low, high);
    return tensor;
  };
  const float scale = random.Float(0.002f, 0.03f);
  const auto zero_point = static_cast<int32_t>(random.Int(-128, 127));
  if (IsWeights(input)) return fill(DataType::kInt8, scale, 0, -127, 127);
  if (input == kLstmX) return fill(DataType::kInt8, scale, zero_point, -128, 127);
  if (input == kLstmOutputState) return fill(DataType::kInt8, scale, zero_point, -128, 127);
  if (input == kLstmCellState) {
    const float power = std::ldexp(1.0f, static_cast<int>(random.Int(-15, -9)));
    return fill(DataType::kInt16, power, 0, -32768, 32767);
  }
  return fill(DataType::kInt32, 1, 0, -3000, 3000);
}

class LstmIsaTest : public ::testing::TestWithParam<Isa> {};

LstmCase RandomCase(Random& random) {
  LstmCase c;
  c.sequence = random.Chance(0.8);
  c.time_major = c.sequence && random.Chance(0.5);
  c.coupled = random.Chance(0.3);
  c.peephole = random.Chance(0.4);
  c.projection = random.Chance(0.4);
  c.projection_bias = c.projection && random.Chance(0.5);
  c.layer_norm = random.Chance(0.3);
  c.steps = c.sequence ? static_cast<int32_t>(random.Int(1, 9)) : 1;
  c.batch = static_cast<int32_t>(random.Int(1, 4));
  c.inputs = random.Pick({1, 3, 8, 17, 40});
  c.cells = random.Pick({1, 4, 15, 16, 20, 33, 70});
  c.outputs = c.projection ? random.Pick({1, 5, 16, 35}) : c.cells;
  c.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kReluN1To1,
                              Activation::kRelu6, Activation::kTanh, Activation::kTanh});
  c.cell_clip = random.Pick({0.0f, 0.5f});
  c.proj_clip = random.Pick({0.0f, 0.3f});
  return c;
}

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
    const LstmCase c = RandomCase(random);
    OpTester plain = MakeTester(c, [&](int input, const Shape& shape) {
      return RandomInput(random, input, shape, hybrid);
    });
    plain.params<LstmParams>().asymmetric_quantize_inputs = hybrid && random.Chance(0.5);
    const auto run = [&](std::string_view candidate, Isa isa, OpTester& tester) {
      tester = plain;
      for (int i : {kLstmOutputState, kLstmCellState}) tester.inputs[i] = plain.inputs[i].Clone();
      EXPECT_TRUE(tester.Infer().ok());
      return tester.Run(candidate, isa, seed, random.Int(0, 3));
    };
    OpTester reference = plain, fast = plain;
    const auto expected = run("reference", Isa::kScalar, reference);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = run("highway", isa, fast);
    if (!Includes(isa, Isa::kSsse3) && !Includes(isa, Isa::kNeon)) {
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

TEST_P(LstmIsaTest, Int8HighwayEqualsTheReference) {
  if (FindFixedPoint16Rows(GetParam()) == nullptr) return;  // the reference runs
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    LstmCase c = RandomCase(random);
    c.peephole = c.projection = c.projection_bias = c.layer_norm = false;
    c.outputs = c.cells;
    OpTester plain = MakeTester(
        c, [&](int input, const Shape& shape) { return RandomIntegerInput(random, input, shape); });
    plain.op.intermediates.resize(5);
    plain.op.intermediates[4] = {{random.Float(0.002f, 0.02f)},
                                 {static_cast<int32_t>(random.Int(-128, 127))}};
    OpTester reference = plain, fast = plain;
    const auto run = [&](std::string_view candidate, Isa isa, OpTester& tester) {
      for (int i : {kLstmOutputState, kLstmCellState}) tester.inputs[i] = plain.inputs[i].Clone();
      EXPECT_TRUE(tester.Infer().ok());
      return tester.Run(candidate, isa, seed, random.Int(0, 3));
    };
    const auto expected = run("reference", Isa::kScalar, reference);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = run("highway", GetParam(), fast);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<int8_t>((*expected)[0], (*actual)[0], "output");
    ExpectSame<int8_t>(reference.inputs[kLstmOutputState], fast.inputs[kLstmOutputState], "state");
    ExpectSame<int16_t>(reference.inputs[kLstmCellState], fast.inputs[kLstmCellState], "cell");
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, LstmIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
