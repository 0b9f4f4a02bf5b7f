// ToFixedPoint against the functions of <cmath> that TFLite's QuantizeMultiplier is made of.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/numbers/quantization.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

FixedPoint Expected(double real) {
  if (real == 0.0) return {};
  int shift;
  auto multiplier = std::llround(std::frexp(real, &shift) * 0x1p31);
  if (multiplier == int64_t{1} << 31) {
    multiplier /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<int32_t>::max(), 30};
  return {static_cast<int32_t>(multiplier), shift};
}

void Compare(double real) {
  const FixedPoint fixed = ToFixedPoint(real), expected = Expected(real);
  EXPECT_EQ(fixed.multiplier, expected.multiplier) << std::hexfloat << real;
  EXPECT_EQ(fixed.shift, expected.shift) << std::hexfloat << real;
}

TEST(FixedPointTest, RoundsAsFrexpAndLlroundDo) {
  for (const double real : {0.0, 5e-324, 0x1p-1022, 0x1p-33, 0x1p-32, 0x1.FFFFFFFFFFFFFp-33, 0.25,
                            0.5, 1.0, 0x1.FFFFFFFFp29, 0x1.FFFFFFFFFFFFFp29, 0x1p30, 0x1p31,
                            std::numeric_limits<double>::max()}) {
    Compare(real);
  }
  Random random(1);
  for (int i = 0; i < 100000; ++i) {
    const double real = std::ldexp(1 + random.Float(0, 1), static_cast<int>(random.Int(-40, 40)));
    Compare(real);
    // Halfway between two multipliers, and beside it.
    const double half =
        std::ldexp(std::floor(std::ldexp(0.5 + 0.25 * random.Float(0, 2), 31)) + 0.5,
                   static_cast<int>(random.Int(-70, 5)));
    for (const double x : {half, std::nextafter(half, 0.0), std::nextafter(half, INFINITY)}) {
      Compare(x);
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
