// LSTMs of every form as one kind of test case: 24 inputs from a few choices.
#pragma once

#include <cmath>
#include <string_view>

#include "kernels/lstm/lstm.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

inline float Logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

struct LstmCase {
  bool sequence = true, time_major = false, coupled = false, peephole = false, projection = false,
       projection_bias = false, layer_norm = false;
  int32_t steps = 1, batch = 1, inputs = 1, cells = 1, outputs = 1;
  Activation activation = Activation::kTanh;
  float cell_clip = 0, proj_clip = 0;
  int threads = 1;
};

// All 24 inputs, from `value(input)`; a state is a run-time value, all else but x is constant.
template <class Make>
OpTester MakeLstm(const LstmCase& c, Make make) {
  OpTester tester(c.sequence ? "UNIDIRECTIONAL_SEQUENCE_LSTM" : "LSTM");
  tester.threads = c.threads;
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

// What is int8 in the hybrid and the integer form.
inline bool IsWeights(int input) {
  return (input >= kLstmInputWeights && input < kLstmBias) || input == kLstmProjection;
}

// Weights that threads, and the rows of a batch, share at each step, and whose order turns.
inline void MakeLarge(LstmCase& c, Random& random) {
  c.peephole = c.projection = c.projection_bias = c.layer_norm = false;
  c.steps = c.sequence ? static_cast<int32_t>(random.Int(1, 4)) : 1;
  c.batch = random.Pick({1, 1, 3, 17});
  c.cells = c.outputs = random.Pick({150, 289, 600});
}

inline LstmCase RandomLstmCase(Random& random) {
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
  c.threads = static_cast<int>(random.Int(1, 3));
  if (random.Chance(0.1)) MakeLarge(c, random);
  return c;
}

// Operands of the int8 form; sums of products have scales around 2^-12.
inline TestTensor RandomIntegerLstmInput(Random& random, int input, const Shape& shape) {
  const auto fill = [&](DataType type, float scale, int32_t zero_point, int low, int high) {
    TestTensor tensor({.type = type, .shape = shape, .quantization = {{scale}, {zero_point}}},
                      4 * random.Int(0, 3));
    tensor.Fill(random, low, high);
    return tensor;
  };
  const float scale = random.Float(0.002f, 0.03f);
  const auto zero_point = static_cast<int32_t>(random.Int(-128, 127));
  if (input >= kLstmPeephole && input < kLstmBias) {
    return fill(DataType::kInt16, scale / 64, 0, -32767, 32767);
  }
  if (input >= kLstmLayerNorm) return fill(DataType::kInt16, scale / 64, 0, -32767, 32767);
  if (IsWeights(input)) return fill(DataType::kInt8, scale, 0, -127, 127);
  if (input == kLstmX) return fill(DataType::kInt8, scale, zero_point, -128, 127);
  if (input == kLstmOutputState) return fill(DataType::kInt8, scale, zero_point, -128, 127);
  if (input == kLstmCellState) {
    const float power = std::ldexp(1.0f, static_cast<int>(random.Int(-15, -9)));
    return fill(DataType::kInt16, power, 0, -32768, 32767);
  }
  return fill(DataType::kInt32, 1, 0, -3000, 3000);
}

// The int8 form with the scales of five intermediate values.
inline OpTester RandomIntegerLstm(Random& random) {
  LstmCase c = RandomLstmCase(random);
  if (c.peephole && c.projection) c.outputs = std::min(c.outputs, c.cells);
  OpTester tester = MakeLstm(c, [&](int input, const Shape& shape) {
    return RandomIntegerLstmInput(random, input, shape);
  });
  for (int i = 0; i < 5; ++i) {
    tester.op.intermediates.push_back(
        {{random.Float(0.002f, 0.02f)}, {static_cast<int32_t>(random.Int(-128, 127))}});
  }
  tester.Output(DataType::kInt8, {{0.01f}, {0}});
  return tester;
}

// Runs a candidate of `tester`, which gets states of its own with the values of `plain`'s.
inline Result<std::vector<TestTensor>> RunLstm(const OpTester& plain, OpTester& tester,
                                               std::string_view candidate, Isa isa, uint64_t seed,
                                               size_t misalign) {
  tester = plain;
  for (int i : {kLstmOutputState, kLstmCellState}) tester.inputs[i] = plain.inputs[i].Clone();
  EXPECT_TRUE(tester.Infer().ok());
  return tester.Run(candidate, isa, seed, misalign);
}

}  // namespace fuselite::kernels::testing
