// Functions of fixed-point numbers in 32 bits, with the bits of the arithmetic that TFLite's
// reference kernels use. "Qm.n" has m integer and n fraction bits beside the sign.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/numbers/quantization.h"

namespace fuselite::kernels {

// exp(x) in Q0.31 of x <= 0 in Q5.26. 2^31 - 1 stands for 1.
int32_t FixedExpOnNegative(int32_t x);

// 1 / (1 + x) in Q0.31 of x in [0, 1) in Q0.31.
int32_t FixedOneOverOnePlus(int32_t x);

// 1/x for x > 0 with `integer_bits`, as `scale` / 2^bits_over_unit with `scale` in Q0.31 within
// [1/2, 1].
struct FixedReciprocal {
  int32_t scale;
  int bits_over_unit;
};
FixedReciprocal Reciprocal(int32_t x, int integer_bits);

// A FixedReciprocal before the division: 1/x = FixedOneOverOnePlus(fraction) / 2^bits_over_unit.
struct ReciprocalParts {
  int32_t fraction;
  int bits_over_unit;
};
ReciprocalParts SplitReciprocal(int32_t x, int integer_bits);

// log(x) in Q5.26 of x in Q12.19 above 2^-12.
int32_t FixedLogOfQ12(int32_t x);

// The two halves of a logarithm: x is r 2^k, k in Q6.25 and r in Q0.31 around sqrt(1/2), and log(r)
// a quotient of polynomials with these coefficients.
struct FixedLogParts {
  int32_t r, power;
};
FixedLogParts SplitLogOfQ12(int32_t x);
namespace fixed_log {
inline constexpr int kPowerBits = 6;  // before the point
inline constexpr int32_t kLog2 = 1488522236, kFourthRootOfHalf = 1805811301;
inline constexpr int32_t kAlphaN = 117049297, kAlphaD = 127690142, kAlphaI = 1057819769,
                         kAlphaF = 638450708;
}  // namespace fixed_log

// 1 / sqrt(x) as multiplier and shift of MultiplyByQuantizedMultiplier, shift <= 0, for an integer
// x >= 0; 0 counts as 1.
FixedPoint FixedInverseSqrt(int32_t x);

// What 8-bit SOFTMAX and LOG_SOFTMAX do to the difference of an input to the row's largest: scaled
// by `beta` * `scale` to Q5.26. Differences below `least` count as minus infinity.
struct ScaledDifference {
  FixedPoint scale;
  int32_t least = 0;

  int32_t operator()(int32_t difference) const {
    const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(difference) << scale.shift);
    return SaturatingRoundingDoublingHighMul(shifted, scale.multiplier);
  }
};
// Fails unless 2^-26 < beta * scale < 16: TFLite aborts below, and overflows above.
Result<ScaledDifference> MakeScaledDifference(double beta, double scale);

// The exponentials of ScaledDifferences in Q0.31 for largest - x = 0 .. 255; 0 below `least`. Sums
// of them are taken in Q12.19, each term rounded: RoundingDivideByPowerOfTwo(value, 12).
struct ExpTable {
  alignas(64) std::array<int32_t, 256> values;
};
Result<ExpTable> MakeExpTable(double beta, double scale);

}  // namespace fuselite::kernels
