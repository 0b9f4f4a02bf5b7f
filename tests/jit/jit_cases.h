// Random cases of emitted kernels against the scalar reference, on every ISA that the machine runs.
#pragma once

#include <string>
#include <vector>

#include "jit/candidates.h"
#include "tests/kernels/float_cases.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::jit::testing {

using kernels::BinaryKind;
using kernels::TailOperand;
using kernels::TailStage;
using kernels::UnaryKind;
using kernels::testing::OpTester;
using kernels::testing::Random;
using kernels::testing::TestTensor;

// Whether this machine builds kernels for `isa`, which packs weights and looks for scales by the
// vectors of that set; it need not run what is emitted.
inline bool CanBuildFor(Isa isa) {
  const Isa machine = DetectIsa();
  return (machine.has(Feature::kAvx2) || !isa.has(Feature::kAvx2)) &&
         (machine.has(Feature::kAvx512) || !isa.has(Feature::kAvx512));
}

// The sets of instructions that code is emitted for on this machine: its presets and, as machines
// with dot products may lack permutations of bytes, those without them; and the best with each
// trait of cores that it lacks, and without each that it has.
inline std::vector<Isa> EmittedIsas() {
  std::vector<Isa> isas;
  for (Isa isa : RunnableIsas()) {
    if (isa.has(Feature::kAvx2)) isas.push_back(isa);
  }
  const Isa best = DetectIsa();
  if (best.has(Feature::kAvx512Vbmi)) isas.push_back(best.without(Feature::kAvx512Vbmi));
  if (!best.has(Feature::kAvx2)) return isas;
  for (const Trait trait : {Trait::kTwoVectorPorts, Trait::kFollowsStreams, Trait::kDividesFast}) {
    isas.push_back(best.has(trait) ? best.without(trait) : best.with(trait));
  }
  return isas;
}

// Appends an input behind the operator's own, for a stage to name.
inline int AddOperand(OpTester& tester, Shape shape, Random& random) {
  while (static_cast<int>(tester.op.inputs.size()) < tester.op.op->max_inputs) tester.Absent();
  const TestTensor operand({.type = DataType::kFloat32, .shape = shape}, 4 * random.Int(0, 3));
  operand.Fill(random, -1, 1);
  tester.Input(operand);
  ++tester.op.tail_inputs;
  return static_cast<int>(tester.inputs.size()) - 1;
}

// Stages that enlarge no error, with operands of every stride.
inline void AddTail(OpTester& tester, Random& random) {
  const Shape shape = tester.op.outputs[0].shape;
  const int32_t channels = shape.dim(-1);
  const auto rows = static_cast<int32_t>(shape.elements() / channels);
  const int32_t batch = shape[0];
  auto& tail = tester.op.tail;
  if (random.Chance(0.5)) tail.rows_per_batch = rows / batch;
  const int64_t per_batch = rows / batch;
  const int stages = static_cast<int>(random.Int(0, 3));
  for (int i = 0; i < stages; ++i) {
    TailOperand y;
    switch (random.Int(0, 5)) {
      case 0: tail.stages.push_back(TailStage::Unary(UnaryKind::kClamp, -0.5f, 0.75f)); continue;
      case 1:
        tail.stages.push_back(TailStage::Unary(random.Pick(
            {UnaryKind::kLogistic, UnaryKind::kTanh, UnaryKind::kSin, UnaryKind::kAbs})));
        continue;
      case 2:  // a residual
        y = {AddOperand(tester, shape, random), per_batch * channels, channels, 1};
        break;
      case 3:  // per channel
        y = {AddOperand(tester, {channels}, random), 0, 0, 1};
        break;
      case 4:  // a gate per batch
        y = {AddOperand(tester, {batch, channels}, random), channels, 0, 1};
        if (tail.rows_per_batch == INT64_MAX) y.batch_stride = 0;
        break;
      default:  // a mask per row
        y = {AddOperand(tester, {rows}, random), per_batch, 1, 0};
        break;
    }
    tail.stages.push_back(
        TailStage::Binary(random.Pick({BinaryKind::kAdd, BinaryKind::kReverseSub, BinaryKind::kMul,
                                       BinaryKind::kMaximum, BinaryKind::kPrelu}),
                          y));
  }
}

// Stages without a function that would round in another way: a residual, a factor per batch.
inline void AddExactTail(OpTester& tester, Random& random) {
  const Shape shape = tester.op.outputs[0].shape;
  const int32_t channels = shape.dim(-1);
  const auto rows = static_cast<int32_t>(shape.elements() / channels);
  auto& tail = tester.op.tail;
  tail.rows_per_batch = rows / shape[0];
  if (random.Chance(0.3)) {
    tail.stages.push_back(TailStage::Unary(UnaryKind::kClamp, -0.5f, 0.75f));
  }
  if (random.Chance(0.4)) {
    const TailOperand residual = {AddOperand(tester, shape, random), rows / shape[0] * channels,
                                  channels, 1};
    tail.stages.push_back(TailStage::Binary(BinaryKind::kAdd, residual));
  }
  if (random.Chance(0.3)) {
    const TailOperand gate = {AddOperand(tester, {shape[0], channels}, random), channels, 0, 1};
    tail.stages.push_back(TailStage::Binary(BinaryKind::kMul, gate));
  }
  if (random.Chance(0.2)) {  // not emitted
    tail.stages.push_back(TailStage::Unary(UnaryKind::kSign));
  }
}

// The float candidate of an operator.
inline const kernels::Candidate* FloatCandidate(const kernels::OperatorDef& op) {
  for (const kernels::Candidate& candidate : CandidatesFor(op)) {
    if (candidate.name == "jit") return &candidate;
  }
  return nullptr;
}

// What `candidate` makes at every ISA against the reference, within `bounds`; a second run with
// other splits and thread counts must give the same bits. Fails where it refuses.
inline void CompareCandidate(const OpTester& tester, const kernels::Candidate& candidate,
                             const std::vector<float>& bounds, Random& random) {
  auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (Isa isa : EmittedIsas()) {
    const std::string what(IsaName(isa));
    auto actual = tester.RunCandidate(candidate, isa, random.Int(1, 99), random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << what << ": " << actual.status().ToString();
    kernels::testing::ExpectNear((*expected)[0], (*actual)[0], [&](int64_t i) { return bounds[i]; },
                                 what);
    OpTester again = tester;
    again.threads = static_cast<int>(random.Int(1, 9));
    auto same = again.RunCandidate(candidate, isa, random.Int(100, 199), random.Int(0, 3));
    ASSERT_TRUE(same.ok()) << what << ": " << same.status().ToString();
    kernels::testing::ExpectSame<float>((*actual)[0], (*same)[0], what + " again");
  }
}

// CompareCandidate() of the operator's emitted candidate, where there is one: layers whose weights
// Highway's kernel reads where they lie are left to it.
inline void CompareJit(const OpTester& tester, const std::vector<float>& bounds, Random& random) {
  if (kernels::ReadsUnpacked(tester.op)) return;
  const kernels::Candidate* candidate = FloatCandidate(*tester.op.op);
  ASSERT_NE(candidate, nullptr);
  CompareCandidate(tester, *candidate, bounds, random);
}

}  // namespace fuselite::jit::testing
