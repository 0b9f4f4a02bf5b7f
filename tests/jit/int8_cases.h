// Tails of random 8-bit products and convolutions, and the comparison of emitted kernels with the
// scalar reference to the bit.
#pragma once

#include "jit/product/product_s8.h"
#include "kernels/product/description.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/quantized_product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {

using kernels::testing::AddIntegerBias;
using kernels::testing::QuantizedCase;
using kernels::testing::QuantizedProductCases;

// What is emitted.
inline const QuantizedProductCases kBytes = {
    .types = {DataType::kInt8, DataType::kInt8, DataType::kUInt8},
    .groups = true,
    .any_matmul = true};

inline void AddLookup(OpTester& tester, Random& random) {
  TailStage stage;
  stage.kind = TailStage::Kind::kLookup;
  std::vector<uint8_t> table(256);
  for (uint8_t& entry : table) entry = static_cast<uint8_t>(random.Int(0, 255));
  stage.table = std::move(table);
  tester.op.tail.stages.push_back(stage);
}

// The parameters of an operand that is added or subtracted, as ADD or SUB of bytes has them.
inline kernels::QuantizedAdd RandomResidual(Random& random, const QuantizedCase& c,
                                            int32_t zero_point) {
  kernels::QuantizedAdd add = {
      .left_shift = 20,
      .x_offset = -zero_point,
      .x_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
      .x_shift = -static_cast<int32_t>(random.Int(0, 3)),
      .y_offset = static_cast<int32_t>(random.Int(-127, 128)),
      .y_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
      .y_shift = -static_cast<int32_t>(random.Int(0, 3)),
      .output_multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX)),
      .output_shift = -static_cast<int32_t>(random.Int(17, 20)),
      .output_offset = zero_point,
      .min = c.type_min(),
      .max = c.type_max()};
  add.negate_x = random.Chance(0.2);
  add.negate_y = !add.negate_x && random.Chance(0.2);
  if (random.Chance(0.7)) {  // as ADD makes them: the larger scale is halved
    (random.Chance(0.5) ? add.x_multiplier : add.y_multiplier) = 1 << 30;
    (random.Chance(0.5) ? add.x_shift : add.y_shift) = -1;
  }
  // One that adds nothing or next to nothing.
  if (random.Chance(0.1)) add.y_shift = -static_cast<int32_t>(random.Int(20, 31));
  return add;
}

// Adds an operand of the output's shape, or of that of one of its batches.
inline void AddResidual(OpTester& tester, Random& random, bool whole) {
  auto& tail = tester.op.tail;
  const TensorInfo output = tester.op.outputs[0];
  const int64_t channels = output.shape.dim(-1);
  Shape shape = output.shape;
  if (!whole) shape.set(0, 1);
  TailStage stage;
  stage.kind = TailStage::Kind::kQuantizedAdd;
  stage.add =
      RandomResidual(random, QuantizedCase{.type = output.type}, output.quantization.zero_point());
  while (static_cast<int>(tester.op.inputs.size()) < tester.op.op->max_inputs) tester.Absent();
  tester.Input(kernels::testing::AnyIntegers(random, output.type, shape, {}));
  ++tester.op.tail_inputs;
  stage.operand = {.input = static_cast<int>(tester.inputs.size()) - 1,
                   .batch_stride = whole && tail.rows_per_batch != INT64_MAX
                                       ? tail.rows_per_batch * channels
                                       : 0,
                   .row_stride = channels,
                   .channel_stride = 1};
  tail.stages.push_back(stage);
}

// Residuals, more than are emitted in a few cases, or a table behind the requantization.
inline void AddInt8Tail(OpTester& tester, Random& random) {
  auto& tail = tester.op.tail;
  const TensorInfo output = tester.op.outputs[0];
  if (output.type == DataType::kInt32) return;  // the sums themselves
  const Shape& shape = output.shape;
  const bool batches = shape.rank() > 2 && shape.elements() > 0 && random.Chance(0.5);
  if (batches) tail.rows_per_batch = shape.elements() / shape[0] / shape.dim(-1);
  while (random.Chance(0.4)) AddResidual(tester, random, !batches || random.Chance(0.5));
  if (random.Chance(0.4)) AddLookup(tester, random);
}

// Multipliers, shifts and biases as dead channels of trained networks have them, and worse, in some
// channels; halves of channels that ordinary requantizations serve stay between them.
inline void AddExtremeScaling(OpTester& tester, Random& random, bool real) {
  const TensorInfo& output = tester.op.outputs[0];
  const QuantizedCase c{.type = output.type};
  const auto zero_point =
      static_cast<int32_t>(random.Pick<int64_t>({c.type_min(), c.type_max(), random.Int(0, 99)}));
  const bool clamps = random.Chance(0.5);
  TailStage stage;
  stage.kind = real ? TailStage::Kind::kRescale : TailStage::Kind::kRequantize;
  stage.zero_point = stage.requantize.zero_point = zero_point;
  stage.min = stage.requantize.min = clamps ? zero_point : c.type_min();
  stage.max = stage.requantize.max = c.type_max();
  std::vector<int32_t> multipliers, shifts;
  std::vector<double> scales;
  for (int32_t i = 0; i < output.shape.dim(-1); ++i) {
    const bool extreme = random.Chance(0.1);
    auto multiplier = static_cast<int32_t>(random.Int(1 << 30, INT32_MAX));
    if (random.Chance(0.05)) multiplier = 1 << 30;
    if (random.Chance(0.05)) multiplier = 0;
    const auto shift = static_cast<int32_t>(extreme ? random.Int(-31, 30) : random.Int(-11, -4));
    multipliers.push_back(multiplier);
    shifts.push_back(shift);
    scales.push_back(std::ldexp(std::max(multiplier, 1 << 30), std::min(shift, 0) - 31));
  }
  stage.requantize.multipliers = std::move(multipliers);
  stage.requantize.shifts = std::move(shifts);
  stage.real_scales = std::move(scales);
  tester.op.tail.stages.push_back(stage);
}

// A bias up to the ends of int32, whose sums still fit.
inline void AddExtremeBias(OpTester& tester, Random& random, int32_t channels) {
  const TestTensor bias({.type = DataType::kInt32,
                         .shape = {channels},
                         .quantization = kernels::testing::BiasQuantization(tester.op)},
                        4);
  for (int32_t i = 0; i < channels; ++i) {
    const int64_t most = random.Chance(0.2) ? int64_t{1} << random.Int(20, 30) : 5000;
    bias.at<int32_t>(i) = static_cast<int32_t>(random.Int(-most, most));
  }
  tester.Constant(bias);
}

// The first candidate that accepts, at every ISA and twice with other splits, against the
// reference. Fails where all refuse.
inline void CompareInt8(const OpTester& tester, Random& random) {
  if (kernels::ReadsUnpacked(tester.op)) return;
  auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (Isa isa : EmittedIsas()) {
    for (const int threads : {1, 7}) {
      OpTester again = tester;
      again.threads = threads;
      Result<std::vector<TestTensor>> actual = NotFound("no candidate");
      for (const kernels::Candidate& candidate : CandidatesFor(*tester.op.op)) {
        actual = again.RunCandidate(candidate, isa, random.Int(1, 99), random.Int(0, 3));
        if (actual.ok()) break;
      }
      ASSERT_TRUE(actual.ok()) << IsaName(isa) << ": " << actual.status().ToString();
      kernels::testing::ExpectSame<uint8_t>((*expected)[0], (*actual)[0], IsaName(isa));
    }
  }
}

// Weights, biases or both of a product come with each run.
inline void GiveAtRunTime(OpTester& tester, Random& random) {
  const auto what = random.Int(1, 3);
  const kernels::ProductInputs& inputs = *tester.op.op->product_inputs;
  if (BitWidth(tester.op.inputs[inputs.weights].type) < 8) return;  // packed once or not at all
  OpTester given = tester;
  if (what & 1) given.AtRunTime(static_cast<size_t>(inputs.weights));
  if (what & 2 && inputs.bias >= 0) given.AtRunTime(static_cast<size_t>(inputs.bias));
  // Few rows by such weights are not emitted.
  const bool dense = given.op.op == kernels::FindOperator("FULLY_CONNECTED");
  if (!dense || !kernels::ReadsWeightsUnpacked(given.op)) tester = std::move(given);
}

// Random operators of `make(random)` whose channels have extreme scales and biases.
template <class Make>
void CompareExtremeCases(int cases, bool real, Make make) {
  const auto without_bias = [&](Random& random) {
    OpTester tester = make(random, kBytes);
    tester.op.inputs.resize(2);
    tester.inputs.resize(2);
    EXPECT_TRUE(tester.Infer().ok());
    AddExtremeBias(tester, random, tester.op.outputs[0].shape.dim(-1));
    return tester;
  };
  kernels::testing::CompareRandomly(cases, without_bias, [&](OpTester& tester, Random& random) {
    AddExtremeScaling(tester, random, real);
    AddInt8Tail(tester, random);
    if (random.Chance(0.3)) GiveAtRunTime(tester, random);
    CompareInt8(tester, random);
    return 1;
  });
}

inline OpTester RandomTransposeConvOfBytes(Random& random, const QuantizedProductCases& cases) {
  return kernels::testing::RandomQuantizedTransposeConv(random, cases.types, 3);
}

// Random operators of `make(random, kBytes)` with random tails.
template <class Make>
void CompareInt8Cases(int cases, Make make) {
  kernels::testing::CompareRandomly(
      cases, [&](Random& random) { return make(random, kBytes); },
      [](OpTester& tester, Random& random) {
        AddInt8Tail(tester, random);
        if (random.Chance(0.3)) GiveAtRunTime(tester, random);
        CompareInt8(tester, random);
        return 1;
      });
}

}  // namespace fuselite::jit::testing
