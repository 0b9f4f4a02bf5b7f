#include "kernels/numbers/short_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

namespace fuselite::kernels {
namespace {

// The value that a half's fields stand for, by arithmetic.
double HalfValue(uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const double mantissa = half & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

bool IsNanHalf(uint16_t half) { return (half & 0x7FFF) > 0x7C00; }

TEST(Half, EveryValueConvertsExactlyAndBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<uint16_t>(i);
    const float value = HalfToFloat(half);
    if (IsNanHalf(half)) {
      EXPECT_TRUE(std::isnan(value)) << i;
      EXPECT_TRUE(IsNanHalf(FloatToHalf(value))) << i;
      continue;
    }
    if ((half & 0x7FFF) == 0x7C00) {
      EXPECT_TRUE(std::isinf(value)) << i;
    } else {
      ASSERT_EQ(static_cast<double>(value), HalfValue(half)) << i;
    }
    EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0) << i;
    ASSERT_EQ(FloatToHalf(value), half);
  }
}

// Every boundary between two neighbouring halves: below it, on it, above it.
TEST(Half, RoundsToNearestAndTiesToEven) {
  for (uint16_t half = 0; half < 0x7BFF; ++half) {
    const auto next = static_cast<uint16_t>(half + 1);
    const auto middle = static_cast<float>((HalfValue(half) + HalfValue(next)) / 2);
    const float below = std::nextafter(middle, 0.0f), above = std::nextafter(middle, 1e9f);
    ASSERT_EQ(FloatToHalf(middle), half & 1 ? next : half) << half;
    ASSERT_EQ(FloatToHalf(below), half) << half;
    ASSERT_EQ(FloatToHalf(above), next) << half;
    ASSERT_EQ(FloatToHalf(-above), next | 0x8000) << half;
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xFC00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
}

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3F80);
  EXPECT_EQ(BFloat16ToFloat(0x3F80), 1.0f);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie, even
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3F818000u)), 0x3F82);  // tie, odd
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(FloatToBFloat16(-std::numeric_limits<float>::infinity()), 0xFF80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x7F800001u)), 0x7FC0);  // stays a NaN
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    if ((bits & 0x7FFF) > 0x7F80) continue;
    ASSERT_EQ(FloatToBFloat16(BFloat16ToFloat(bits)), bits);
  }
}

TEST(BFloat16, IsTheNearest) {
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(value) || std::fabs(value) > 3e38f) continue;
    const uint16_t bits = FloatToBFloat16(value);
    const double error = std::fabs(double{BFloat16ToFloat(bits)} - value);
    for (int step : {-1, 1}) {
      const float other = BFloat16ToFloat(static_cast<uint16_t>(bits + step));
      if (!std::isfinite(other)) continue;
      ASSERT_LE(error, std::fabs(double{other} - value)) << value;
    }
  }
}

TEST(Half, DoesNotDependOnTheRoundingMode) {
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  volatile float value = 1.0004f;
  EXPECT_EQ(FloatToHalf(value), 0x3C00);
  std::fesetround(before);
}

}  // namespace
}  // namespace fuselite::kernels
