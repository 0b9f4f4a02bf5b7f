// Logistic and tanh of 16-bit fixed point: the scalar functions, and the vectors of each target.
#include "kernels/lstm/fixed_point16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/kernels/op_tester.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/fixed_point16_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lstm/fixed_point16-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// In place, of whole vectors.
void LogisticOfAll(int16_t* values, size_t n) {
  const ShortTag d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(LogisticQ12Vec(hn::LoadU(d, values + i)), d, values + i);
  }
}

void TanhOfAll(int16_t* values, size_t n, int integer_bits) {
  const ShortTag d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(TanhFixedVec(hn::LoadU(d, values + i), integer_bits), d, values + i);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels::testing {
namespace {

constexpr auto kLogistic = FUSELITE_SIMD_TABLE(LogisticOfAll);
constexpr auto kTanh = FUSELITE_SIMD_TABLE(TanhOfAll);

TEST(FixedPoint16Test, LogisticAndTanhAreWithinTheirPrecision) {
  for (int x = -32768; x <= 32767; x += 7) {
    const auto raw = static_cast<int16_t>(x);
    ASSERT_NEAR(LogisticQ12(raw), std::min(32768.0 / (1 + std::exp(-x / 4096.0)), 32767.0), 10)
        << x;
    for (int bits = 0; bits <= 6; ++bits) {
      const double exact = std::tanh(std::ldexp(x, bits - 15)) * 32768;
      ASSERT_NEAR(TanhFixed(raw, bits), std::min(exact, 32767.0), 24) << x << " " << bits;
    }
  }
  EXPECT_EQ(LogisticQ12(0), 16384);
  EXPECT_EQ(TanhFixed(0, 3), 0);
}

TEST(FixedPoint16Test, VectorsEqualTheScalarFunctions) {
  std::vector<int16_t> all(65536);
  std::iota(all.begin(), all.end(), INT16_MIN);
  for (Isa isa : RunnableIsas()) {
    if (!isa.has_vectors()) continue;
    SCOPED_TRACE(IsaName(isa));
    std::vector<int16_t> values = all;
    kLogistic.For(isa)(values.data(), values.size());
    for (int i = 0; i < 65536; ++i) ASSERT_EQ(values[i], LogisticQ12(all[i])) << all[i];
    for (int bits = 0; bits <= 6; ++bits) {
      values = all;
      kTanh.For(isa)(values.data(), values.size(), bits);
      for (int i = 0; i < 65536; ++i) ASSERT_EQ(values[i], TanhFixed(all[i], bits)) << all[i];
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
#endif
