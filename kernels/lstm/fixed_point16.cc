#include "kernels/lstm/fixed_point16.h"

#include "kernels/numbers/quantization.h"

namespace fuselite::kernels {
namespace {

constexpr int16_t kMax = 32767, kMin = -32768;

}  // namespace

int16_t MultiplyQ15(int16_t a, int16_t b) {
  if (a == kMin && b == kMin) return kMax;
  const int32_t product = int32_t{a} * b;
  return static_cast<int16_t>((product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

// Values below carry how many integer bits they have in their names: q0 has 15 fractional bits.
namespace {

// Wraps around, as 16-bit addition does.
int16_t Add(int16_t a, int16_t b) { return static_cast<int16_t>(a + b); }

// x 2^exponent for exponent >= 0; what does not fit saturates.
int16_t ShiftLeft(int16_t x, int exponent) { return Saturate16(int32_t{x} * (1 << exponent)); }

int16_t ShiftRight(int16_t x, int exponent) {
  return static_cast<int16_t>(RoundingDivideByPowerOfTwo(x, exponent));
}

// exp(a) for a in [-1/4, 0): the series around -1/8.
int16_t ExpWithinQuarter(int16_t a_q0) {
  const int16_t center = ShortConstant(kExpMinusEighth);
  const int16_t third = ShortConstant(kThird);
  const int16_t x = Add(a_q0, 1 << 12);
  const int16_t x2 = MultiplyQ15(x, x);
  const int16_t x3 = MultiplyQ15(x2, x);
  const int16_t x4 = MultiplyQ15(x2, x2);
  const int16_t sum = Add(MultiplyQ15(Add(ShiftRight(x4, 2), x3), third), x2);
  const int16_t series = Add(x, ShiftRight(sum, 1));
  return Saturate16(int32_t{center} + MultiplyQ15(center, series));
}

// exp(a) for a <= 0 with so many integer bits.
int16_t ExpNegative(int16_t a, int integer_bits) {
  const int fraction_bits = 15 - integer_bits;
  if (a == 0) return kMax;
  if (integer_bits > 5 && a < -(1 << (fraction_bits + 5))) return 0;
  const int quarter = 1 << (fraction_bits - 2);
  const auto within = static_cast<int16_t>((a & (quarter - 1)) - quarter);
  int16_t result = ExpWithinQuarter(ShiftLeft(within, integer_bits));
  const auto rest = static_cast<int16_t>(within - a);
  for (int e = -2; e <= 4 && e < integer_bits; ++e) {
    if (rest & (1 << (fraction_bits + e)))
      result = MultiplyQ15(result, ShortConstant(kExpPowers[e + 2]));
  }
  return result;
}

// 2 / (1 + a) for a in [0, 1], with 2 integer bits.
int16_t TwoOverOnePlus(int16_t a_q0) {
  const auto half = static_cast<int16_t>((int32_t{a_q0} + kMax + 1) / 2);  // (1 + a) / 2
  int16_t x = Add(ShortConstant(kNewtonStart), MultiplyQ15(half, ShortConstant(kNewtonSlope)));
  for (int i = 0; i < 3; ++i) {
    const auto error = static_cast<int16_t>((1 << 13) - MultiplyQ15(half, x));
    x = Add(x, ShiftLeft(MultiplyQ15(x, error), 2));
  }
  return x;
}

}  // namespace

int16_t LogisticQ12(int16_t x) {
  constexpr int16_t kHalf = 1 << 14;
  if (x == 0) return kHalf;
  // The smallest number is its own negative in 16 bits.
  const auto negative = static_cast<int16_t>(x > 0 ? -x : x);
  const int16_t positive_side = ShiftLeft(TwoOverOnePlus(ExpNegative(negative, 3)), 1);
  return x > 0 ? positive_side : static_cast<int16_t>(kMax - positive_side);
}

int16_t TanhFixed(int16_t x, int integer_bits) {
  if (x == 0) return 0;
  const auto negative = static_cast<int16_t>(x < 0 ? x : -x);
  // (1 - e) / (1 + e) = 2 / (1 + e) - 1 with e = exp(-2|x|): one more integer bit is twice x.
  const int16_t two_over = TwoOverOnePlus(ExpNegative(negative, integer_bits + 1));
  const int16_t size = ShiftLeft(static_cast<int16_t>(two_over - (1 << 13)), 2);
  return x < 0 ? static_cast<int16_t>(-size) : size;
}

}  // namespace fuselite::kernels
