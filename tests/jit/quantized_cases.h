// Random quantized cases of emitted kernels: to the bit of the scalar reference.
#pragma once

#include <vector>

#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {

// The levels that 8-bit products are emitted for on this machine.
inline std::vector<Isa> ByteIsas() {
  std::vector<Isa> isas;
  for (Isa isa : RunnableIsas()) {
    if (Includes(isa, Isa::kAvxVnni) || Includes(isa, Isa::kAvx512Vnni)) isas.push_back(isa);
  }
  return isas;
}

inline Quantization RandomQuantization(Random& random, DataType type) {
  const bool is_signed = type == DataType::kInt8;
  return {.scales = {random.Float(0.01f, 0.2f)},
          .zero_points = {
              static_cast<int32_t>(random.Int(is_signed ? -128 : 0, is_signed ? 127 : 255))}};
}

// 8-bit weights of any values, symmetric, with one scale or one for each channel along `axis`.
inline TestTensor RandomWeights(Random& random, DataType type, Shape shape, int axis) {
  const int64_t scales = type == DataType::kInt8 && random.Chance(0.7) ? shape[axis] : 1;
  Quantization quantization{.axis = axis};
  for (int64_t i = 0; i < scales; ++i) {
    quantization.scales.push_back(random.Float(0.001f, 0.05f));
    quantization.zero_points.push_back(type == DataType::kUInt8 ? 128 : 0);
  }
  const TestTensor weights({.type = type, .shape = shape, .quantization = quantization},
                           random.Int(0, 3));
  weights.Fill(random, type == DataType::kInt8 ? -128 : 0, type == DataType::kInt8 ? 127 : 255);
  return weights;
}

inline TestTensor RandomBias(Random& random, int32_t channels) {
  const TestTensor bias({.type = DataType::kInt32, .shape = {channels}}, 4);
  bias.Fill(random, -20000, 20000);
  return bias;
}

// A residual add, another tail stage that runs over the stored tile, or nothing.
inline void AddQuantizedTail(OpTester& tester, Random& random) {
  const TensorInfo& out = tester.op.outputs[0];
  const int64_t channels = out.shape.dim(-1);
  if (random.Chance(0.4)) {
    while (static_cast<int>(tester.op.inputs.size()) < tester.op.op->max_inputs) tester.Absent();
    const bool is_signed = out.type == DataType::kInt8;
    const TestTensor residual({.type = out.type, .shape = out.shape}, random.Int(0, 3));
    residual.Fill(random, is_signed ? -128 : 0, is_signed ? 127 : 255);
    TailStage stage;
    stage.kind = TailStage::Kind::kQuantizedAdd;
    stage.operand = {.input = static_cast<int>(tester.inputs.size()),
                     .row_stride = channels,
                     .channel_stride = 1};
    stage.add = {.left_shift = 20,
                 .x_offset = static_cast<int32_t>(random.Int(-127, 128)),
                 .x_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                 .x_shift = static_cast<int32_t>(random.Int(-3, 0)),
                 .y_offset = static_cast<int32_t>(random.Int(-127, 128)),
                 .y_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                 .y_shift = static_cast<int32_t>(random.Int(-3, 0)),
                 .output_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
                 .output_shift = static_cast<int32_t>(random.Int(-20, -16)),
                 .output_offset = static_cast<int32_t>(random.Int(-3, 3)),
                 .min = is_signed ? -128 : 0,
                 .max = is_signed ? 127 : 255};
    if (random.Chance(0.3)) stage.add.min = 3, stage.add.max = 90;
    tester.op.tail.stages.push_back(stage);
    tester.Input(residual);
  }
  if (random.Chance(0.2)) {
    TailStage stage;
    stage.kind = TailStage::Kind::kLookup;
    for (int i = 0; i < 256; ++i) stage.table.push_back(static_cast<uint8_t>(random.Int(0, 255)));
    tester.op.tail.stages.push_back(stage);
  }
}

// Every emitted candidate that accepts, at least one; the others must refuse as kUnsupported.
inline void CompareBytes(const OpTester& tester, Random& random,
                         const std::vector<Isa>& isas = ByteIsas()) {
  auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (Isa isa : isas) {
    int accepted = 0;
    for (const kernels::Candidate& candidate : CandidatesFor(*tester.op.op)) {
      const std::string what = std::string(candidate.name) + " " + std::string(IsaName(isa));
      OpTester copy = tester;
      copy.threads = static_cast<int>(random.Int(1, 9));
      auto actual = copy.RunBuild(candidate.build, isa, random.Int(1, 99), random.Int(0, 3));
      if (!actual.ok()) {
        EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported) << actual.status().ToString();
        continue;
      }
      ++accepted;
      kernels::testing::ExpectSame<int8_t>((*expected)[0], (*actual)[0], what);
    }
    EXPECT_GT(accepted, 0) << "all candidates refuse " << IsaName(isa);
  }
}

}  // namespace fuselite::jit::testing
