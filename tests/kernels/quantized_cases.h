// Random quantized operands, and fast kernels against the reference to the bit.
#pragma once

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

// Scales and zero points that an operator of `channels` filters could have; several scales where
// `per_channel`.
inline Quantization RandomQuantization(Random& random, int64_t channels, bool per_channel,
                                       int64_t min_zero, int64_t max_zero) {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  for (int64_t i = 0; i < (per_channel ? channels : 1); ++i) {
    scales.push_back(random.Float(0.002f, 0.02f));
    zero_points.push_back(static_cast<int32_t>(random.Int(min_zero, max_zero)));
  }
  return {.scales = std::move(scales), .zero_points = std::move(zero_points)};
}

// That of a bias of `op`, whose steps are those of its products.
inline Quantization BiasQuantization(const OpDescription& op) {
  return {.scales = {op.inputs[0].quantization.scale() * op.inputs[1].quantization.scale()},
          .zero_points = {0}};
}

// Every value of the type at random.
inline TestTensor RandomTensor(Random& random, TensorInfo info, size_t misalign = 0) {
  const DataType type = info.type;
  TestTensor tensor(std::move(info), misalign);
  const int bits = BitWidth(type) > 16 ? 12 : BitWidth(type);
  const bool is_signed = type != DataType::kUInt8;
  const double span = std::ldexp(1.0, bits);
  tensor.Fill(random, is_signed ? -span / 2 : 0, is_signed ? span / 2 - 1 : span - 1);
  return tensor;
}

// Every fast candidate at every ISA against the reference. Counts the runs that were not refused.
template <class T>
int CompareToTheBit(const OpTester& tester, Random& random) {
  Result<std::vector<TestTensor>> expected =
      tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  if (!expected.ok()) return 0;
  int runs = 0;
  for (const Candidate& candidate : tester.op.op->candidates) {
    if (candidate.name == "reference") continue;
    for (Isa isa : RunnableIsas()) {
      OpTester threaded = tester;
      threaded.threads = static_cast<int>(random.Int(1, 9));
      Result<std::vector<TestTensor>> actual =
          threaded.RunCandidate(candidate, isa, random.Int(1, 99), random.Int(0, 3));
      if (!actual.ok()) {
        EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported) << actual.status().ToString();
        continue;
      }
      ExpectSame<T>((*expected)[0], (*actual)[0],
                    std::string(candidate.name) + " " + std::string(IsaName(isa)));
      ++runs;
    }
  }
  return runs;
}

// "highway" at every ISA against the reference. It has to take the operator where there are
// vectors.
template <class T>
void ExpectHighwayIsTheReference(const OpTester& tester, Random& random) {
  const Result<std::vector<TestTensor>> expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (const Isa isa : RunnableIsas()) {
    const Result<std::vector<TestTensor>> actual =
        tester.Run("highway", isa, random.Int(1, 99), random.Int(0, 3));
    if (!isa.has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<T>((*expected)[0], (*actual)[0], IsaName(isa));
  }
}

}  // namespace fuselite::kernels::testing
