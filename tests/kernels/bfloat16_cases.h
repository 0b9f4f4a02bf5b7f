// Operations of float32 some of whose values are bfloat16 in memory.
#pragma once

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/numbers/short_floats.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

// The same operation on the same numbers, in memory of either type.
struct InBothTypes {
  OpTester floats, shorts;
};

inline TestTensor AsBFloat16(const TestTensor& tensor, Random& random) {
  TensorInfo info = tensor.info();
  info.type = DataType::kBFloat16;
  TestTensor rounded(std::move(info), 2 * random.Int(0, 3));
  for (int64_t i = 0; i < tensor.info().elements(); ++i) {
    rounded.at<uint16_t>(i) = FloatToBFloat16(tensor.at<float>(i));
  }
  return rounded;
}

// A value of either type.
inline float FloatAt(const TestTensor& tensor, int64_t i) {
  if (tensor.info().type == DataType::kFloat32) return tensor.at<float>(i);
  return BFloat16ToFloat(tensor.at<uint16_t>(i));
}

// `tester` with one input more as bfloat16, whose numbers `floats` gets, too.
inline void RoundInput(InBothTypes& both, size_t input, Random& random) {
  both.shorts.inputs[input] = AsBFloat16(both.shorts.inputs[input], random);
  both.shorts.op.inputs[input].type = DataType::kBFloat16;
  both.floats.inputs[input] = both.floats.inputs[input].Clone();
  const TestTensor& numbers = both.floats.inputs[input];
  for (int64_t i = 0; i < numbers.info().elements(); ++i) {
    numbers.at<float>(i) = FloatAt(both.shorts.inputs[input], i);
  }
}

// Input `x`, operands of the tail and the output, each or not. Precondition: shapes are inferred.
inline InBothTypes WithBFloat16(const OpTester& tester, size_t x, Random& random) {
  InBothTypes both{tester, tester};
  const int which = static_cast<int>(random.Int(1, 3));
  if (which & 1) RoundInput(both, x, random);
  if (which & 2) both.shorts.op.outputs[0].type = DataType::kBFloat16;
  for (size_t i = tester.op.own_inputs(); i < tester.op.inputs.size(); ++i) {
    if (random.Chance(0.5)) RoundInput(both, i, random);
  }
  return both;
}

// The number that is stored for `value`: bfloat16 of instructions have no denormals.
inline float Stored(float value, DataType type, bool flushes) {
  if (type == DataType::kFloat32) return value;
  const float rounded = BFloat16ToFloat(FloatToBFloat16(value));
  return flushes && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : rounded;
}

// Whether `actual` holds what is stored of `expected`, to the bit.
inline void ExpectStored(const TestTensor& expected, const TestTensor& actual, bool flushes,
                         const std::string& what) {
  for (int64_t i = 0; i < expected.info().elements(); ++i) {
    const float value = Stored(expected.at<float>(i), actual.info().type, flushes);
    const float is = FloatAt(actual, i);
    if (std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(is)) continue;
    if (std::isnan(value) && std::isnan(is)) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << is << ", expected " << value;
    return;
  }
}

// Whether `candidate` takes the operation in both types, and gives the same. It may refuse
// bfloat16, where it says so.
inline bool ExpectSameInMemory(const InBothTypes& both, const Candidate& candidate, Isa isa,
                               Random& random) {
  const auto expected = both.floats.RunCandidate(candidate, isa, random.Int(1, 99));
  const auto actual = both.shorts.RunCandidate(candidate, isa, random.Int(1, 99), random.Int(0, 3));
  if (!actual.ok()) {
    EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
    if (expected.ok()) {
      EXPECT_THAT(actual.status().message(), ::testing::HasSubstr("bfloat16"));
    }
    return false;
  }
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  if (!expected.ok()) return false;
  ExpectStored((*expected)[0], (*actual)[0], true, std::string(candidate.name));
  return !::testing::Test::HasFailure();
}

}  // namespace fuselite::kernels::testing
