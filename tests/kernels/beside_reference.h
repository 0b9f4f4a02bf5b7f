// The vector kernel of an instruction set beside the reference.
#pragma once

#include <optional>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {

struct BesideReference {
  TestTensor expected, actual;  // the first outputs
};

// What the reference and "highway" at `isa` give for an operation that is inferred. Outputs of the
// latter start `misalign` elements behind an aligned address. Without vectors "highway" has to
// refuse, and there is nothing to compare; nor after a failure of the test, which either kernel's
// error is.
inline std::optional<BesideReference> RunHighway(const OpTester& tester, Isa isa, uint64_t seed,
                                                 size_t misalign) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  const auto actual = tester.Run("highway", isa, seed, misalign);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  if (!isa.has_vectors()) {
    EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
    return std::nullopt;
  }
  EXPECT_TRUE(actual.ok()) << actual.status().ToString();
  if (!expected.ok() || !actual.ok()) return std::nullopt;
  return BesideReference{(*expected)[0], (*actual)[0]};
}

// Values of every type as their bits.
inline void ExpectSameBits(const TestTensor& expected, const TestTensor& actual) {
  switch (BitWidth(expected.info().type)) {
    case 8: return ExpectSame<uint8_t>(expected, actual, "highway");
    case 16: return ExpectSame<int16_t>(expected, actual, "highway");
    case 32: return ExpectSame<int32_t>(expected, actual, "highway");
    default: return ExpectSame<int64_t>(expected, actual, "highway");
  }
}

// "highway" gives the reference's bits at every level that has vectors, cut into random parts.
inline void ExpectLikeReference(const OpTester& tester, Random& random) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (const Isa isa : RunnableIsas()) {
    if (isa == Isa::kScalar) continue;
    SCOPED_TRACE(IsaName(isa));
    const auto actual = tester.Run("highway", isa, random.Int(1, 1000), random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSameBits((*expected)[0], (*actual)[0]);
  }
}

}  // namespace fuselite::kernels::testing
