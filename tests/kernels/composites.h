// What the tests of operators that only rewrites make have in common: each ISA's candidates against
// the reference.
#pragma once

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

inline constexpr DataType kF32 = DataType::kFloat32;

inline TestTensor RandomTensor(Random& random, Shape shape, float magnitude) {
  TestTensor tensor({.type = kF32, .shape = shape}, 4 * random.Int(0, 3));
  tensor.Fill(random, -magnitude, magnitude);
  return tensor;
}

inline bool HasVectors(Isa isa) { return isa.has_vectors(); }

class CompositesTest : public ::testing::TestWithParam<Isa> {
 protected:
  void Compare(const OpTester& tester, const TestTensor& expected, float absolute,
               const char* candidate = "highway") {
    const auto actual = tester.Run(candidate, GetParam(), 3, 1);
    if (!HasVectors(GetParam())) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      return;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectNear(
        expected, (*actual)[0],
        [&](int64_t i) { return absolute + 2e-6f * std::abs(expected.at<float>(i)); },
        tester.op.op->name);
  }
};

}  // namespace fuselite::kernels::testing
