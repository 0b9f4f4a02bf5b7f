// Random quantized products and convolutions, and the comparison of emitted kernels with the scalar
// reference to the bit.
#pragma once

#include <cmath>

#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {

// What surrounds the weights of a random case.
struct Int8Case {
  DataType type = DataType::kInt8;
  float input_scale = 1, output_scale = 1;
  int32_t zero_point = 0, output_zero_point = 0;
  bool per_channel = false;

  int32_t type_min() const { return type == DataType::kInt8 ? -128 : 0; }
  int32_t type_max() const { return type == DataType::kInt8 ? 127 : 255; }
};

// Zero points at the ends of the type as often as inside. Outputs of sums of `depth` products fill
// their range, in some cases leave it by far, or are nearly all alike.
inline Int8Case RandomInt8(Random& random, int64_t depth) {
  Int8Case c;
  c.type = random.Pick({DataType::kInt8, DataType::kInt8, DataType::kUInt8});
  const auto zero_point = [&] {
    if (random.Chance(0.4)) return random.Pick({c.type_min(), c.type_max()});
    return static_cast<int32_t>(random.Int(c.type_min(), c.type_max()));
  };
  c.zero_point = zero_point();
  c.output_zero_point = zero_point();
  c.per_channel = c.type == DataType::kInt8 && random.Chance(0.6);
  c.input_scale = random.Float(0.002f, 0.1f);
  const float typical = c.input_scale * 0.01f * 60 * std::sqrt(static_cast<float>(depth));
  c.output_scale = typical * random.Pick({0.005f, 0.3f, 0.5f, 1.0f, 1.0f, 4.0f, 1000.0f});
  return c;
}

inline Quantization WeightsQuantization(const Int8Case& c, Random& random, int32_t channels,
                                        int axis, bool may_offset) {
  Quantization q{.scales = {}, .zero_points = {}, .axis = axis};
  for (int32_t i = 0; i < (c.per_channel ? channels : 1); ++i) {
    q.scales.push_back(random.Float(0.005f, 0.02f));
    const bool offset = c.type == DataType::kUInt8 || (may_offset && !c.per_channel);
    q.zero_points.push_back(
        offset ? random.Pick<int32_t>({c.type_min(), c.type_max(),
                                       c.type == DataType::kUInt8 ? 128 : 0, c.type_min() + 100})
               : 0);
  }
  return q;
}

inline TestTensor Int8Tensor(const Int8Case& c, Random& random, Shape shape,
                             Quantization quantization, int64_t pitch = 0) {
  const TestTensor tensor(
      {.type = c.type, .shape = shape, .quantization = std::move(quantization), .row_pitch = pitch},
      random.Int(0, 5));
  tensor.Fill(random, c.type_min(), c.type_max());
  return tensor;
}

// Weights of the case's type, or of four bits in the place of int8.
inline TestTensor Int8Weights(const Int8Case& c, Random& random, Shape shape,
                              Quantization quantization) {
  if (c.type != DataType::kInt8 || random.Chance(0.8)) {
    return Int8Tensor(c, random, shape, std::move(quantization));
  }
  const TestTensor tensor(
      {.type = DataType::kInt4, .shape = shape, .quantization = std::move(quantization)},
      random.Int(0, 5));
  tensor.Fill(random, -8, 7);
  return tensor;
}

inline void AddInt32Bias(OpTester& tester, Random& random, int32_t channels) {
  if (random.Chance(0.2)) return;
  const TestTensor bias({.type = DataType::kInt32, .shape = {channels}}, 4);
  bias.Fill(random, -5000, 5000);
  tester.Constant(bias);
}

inline void AddLookup(OpTester& tester, Random& random) {
  TailStage stage;
  stage.kind = TailStage::Kind::kLookup;
  for (int i = 0; i < 256; ++i) stage.table.push_back(static_cast<uint8_t>(random.Int(0, 255)));
  tester.op.tail.stages.push_back(stage);
}

// A residual or a table behind the requantization, in some cases.
inline void AddInt8Tail(OpTester& tester, const Int8Case& c, Random& random) {
  auto& tail = tester.op.tail;
  const Shape shape = tester.op.outputs[0].shape;
  const int32_t channels = shape.dim(-1);
  if (random.Chance(0.4)) {
    TailStage stage;
    stage.kind = TailStage::Kind::kQuantizedAdd;
    stage.add = {.left_shift = 20,
                 .x_offset = -c.output_zero_point,
                 .x_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                 .x_shift = -static_cast<int32_t>(random.Int(0, 3)),
                 .y_offset = static_cast<int32_t>(random.Int(-127, 128)),
                 .y_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                 .y_shift = -static_cast<int32_t>(random.Int(0, 3)),
                 .output_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                 .output_shift = -static_cast<int32_t>(random.Int(17, 20)),
                 .output_offset = c.output_zero_point,
                 .min = c.type_min(),
                 .max = c.type_max()};
    stage.add.negate_x = random.Chance(0.2);
    stage.add.negate_y = !stage.add.negate_x && random.Chance(0.2);
    if (random.Chance(0.7)) {  // as ADD makes them: the larger scale is halved
      (random.Chance(0.5) ? stage.add.x_multiplier : stage.add.y_multiplier) = 1 << 30;
      (random.Chance(0.5) ? stage.add.x_shift : stage.add.y_shift) = -1;
    }
    while (static_cast<int>(tester.op.inputs.size()) < tester.op.op->max_inputs) tester.Absent();
    tester.Input(Int8Tensor(c, random, shape, {}));
    stage.operand = {static_cast<int>(tester.inputs.size()) - 1, 0, channels, 1};
    tail.stages.push_back(stage);
  }
  if (random.Chance(0.4)) AddLookup(tester, random);
}

// The first candidate that accepts, at every ISA and twice with other splits, against the
// reference. Fails where all refuse.
inline void CompareInt8(const OpTester& tester, Random& random) {
  auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (Isa isa : EmittedIsas()) {
    for (const int threads : {1, 7}) {
      OpTester again = tester;
      again.threads = threads;
      Result<std::vector<TestTensor>> actual = NotFound("no candidate");
      for (const kernels::Candidate& candidate : CandidatesFor(*tester.op.op)) {
        actual = again.RunBuild(candidate.build, isa, random.Int(1, 99), random.Int(0, 3));
        if (actual.ok()) break;
      }
      ASSERT_TRUE(actual.ok()) << IsaName(isa) << ": " << actual.status().ToString();
      kernels::testing::ExpectSame<uint8_t>((*expected)[0], (*actual)[0], IsaName(isa));
    }
  }
}

}  // namespace fuselite::jit::testing
