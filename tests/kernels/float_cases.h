// Random cases of float32 operators that sum products: fast kernels against the reference, within
// the bound of docs/design.md.
#pragma once

#include <functional>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

inline constexpr float kEpsilon = 0x1p-23f;

// Per output element, 1e-5 + 4 eps sqrt(depth) times the sum of magnitudes: the reference's result
// for magnitudes of all operands, without activation and tail. `plain` clears the activation.
inline std::vector<float> Bounds(const OpTester& tester, double depth,
                                 const std::function<void(OpTester&)>& plain) {
  OpTester magnitudes = tester;
  magnitudes.op.tail = {};
  plain(magnitudes);
  for (TestTensor& input : magnitudes.inputs) {
    if (input.info().type != DataType::kFloat32) continue;
    input = input.Clone();
    for (int64_t i = 0; i < input.info().elements(); ++i) {
      input.at<float>(i) = std::abs(input.at<float>(i));
    }
  }
  Result<std::vector<TestTensor>> sums = magnitudes.Run("reference", Isa::kScalar);
  EXPECT_TRUE(sums.ok()) << sums.status().ToString();
  std::vector<float> bounds;
  if (!sums.ok()) return bounds;
  for (float sum : (*sums)[0].values<float>()) {
    bounds.push_back(1e-5f + 4 * kEpsilon * static_cast<float>(std::sqrt(depth)) * sum);
  }
  return bounds;
}

// Adds a tail whose stages do not enlarge an error, at random: a clamp, a residual, or both.
inline void AddRandomTail(OpTester& tester, Random& random) {
  const TensorInfo& out = tester.op.outputs[0];
  if (random.Chance(0.4)) {
    tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kClamp, -0.5f, 0.75f));
  }
  if (random.Chance(0.4)) {
    const TestTensor residual({.type = DataType::kFloat32, .shape = out.shape}, 4);
    residual.Fill(random, -1, 1);
    // Operands of stages stand behind the operator's own inputs.
    while (static_cast<int>(tester.op.inputs.size()) < tester.op.op->max_inputs) tester.Absent();
    const int64_t channels = out.shape.dim(-1);
    tester.op.tail.stages.push_back(
        TailStage::Binary(random.Pick({BinaryKind::kAdd, BinaryKind::kReverseSub}),
                          {.input = static_cast<int>(tester.inputs.size()),
                           .row_stride = channels,
                           .channel_stride = 1}));
    tester.Input(residual);
  }
}

// Every fast candidate at every ISA against the reference, twice with other splits: the bits must
// not depend on them. At each ISA with vectors some candidate must take it. Counts the runs.
inline int CompareCandidates(const OpTester& tester, const std::vector<float>& bounds,
                             Random& random, std::span<const Candidate> candidates) {
  Result<std::vector<TestTensor>> expected =
      tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  if (!expected.ok()) return 0;
  int runs = 0;
  for (Isa isa : RunnableIsas()) {
    int taken = 0;
    std::string refusals;
    for (const Candidate& candidate : candidates) {
      if (candidate.name == "reference") continue;
      Result<std::vector<TestTensor>> actual =
          tester.RunCandidate(candidate, isa, random.Int(1, 99), random.Int(0, 3));
      if (!actual.ok()) {
        EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported) << actual.status().ToString();
        refusals += "\n" + actual.status().ToString();
        continue;
      }
      const std::string what = std::string(candidate.name) + " " + std::string(IsaName(isa));
      ExpectNear((*expected)[0], (*actual)[0], [&](int64_t i) { return bounds[i]; }, what);
      OpTester again = tester;
      again.threads = static_cast<int>(random.Int(1, 9));
      Result<std::vector<TestTensor>> same =
          again.RunCandidate(candidate, isa, random.Int(100, 199), random.Int(0, 3));
      EXPECT_TRUE(same.ok());
      if (same.ok()) ExpectSame<float>((*actual)[0], (*same)[0], what + " again");
      ++taken;
    }
    EXPECT_TRUE(taken > 0 || isa == Isa::kScalar) << IsaName(isa) << ": all refuse:" << refusals;
    runs += taken;
  }
  return runs;
}

// CompareCandidates() of the operator's own candidates.
inline int CompareCandidates(const OpTester& tester, const std::vector<float>& bounds,
                             Random& random) {
  return CompareCandidates(tester, bounds, random, tester.op.op->candidates);
}

}  // namespace fuselite::kernels::testing
