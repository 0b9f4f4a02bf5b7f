// Logistic and tanh in 16-bit fixed point, to the bit as TFLite's integer LSTM has them.
//
// The algorithm is gemmlowp's (fixedpoint.h): the exponential of a negative number from a Taylor
// series within a quarter and a product of exponentials of powers of two; 1 / (1 + x) by three
// steps of Newton's method. Products keep the high 16 bits of 32, rounded as MultiplyQ15 says.
// fixed_point16-inl.h has the two functions on vectors.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fuselite::kernels {

// 1 / (1 + exp(-x)) with 15 fractional bits, of x with 12.
int16_t LogisticQ12(int16_t x);

// tanh(x) with 15 fractional bits, of x with 15 - `integer_bits`. Precondition: 0 to 6.
int16_t TanhFixed(int16_t x, int integer_bits);

// x, or the nearest value that fits.
inline int16_t Saturate16(int64_t x) {
  return static_cast<int16_t>(std::clamp<int64_t>(x, -32768, 32767));
}

// a b of operands with 15 and n fractional bits, with n: rounded to the nearest, ties upwards.
int16_t MultiplyQ15(int16_t a, int16_t b);

// Numbers of the algorithm, with 31 fractional bits but for Newton's, which have 29.
inline constexpr int32_t kExpMinusEighth = 1895147668;
inline constexpr int32_t kThird = 715827883;
// exp(-2^e) for e = -2, -1, ...
inline constexpr int32_t kExpPowers[] = {1672461947, 1302514674, 790015084, 290630308,
                                         39332535,   720401,     242};
// The first guess for 1 / d, d in [1/2, 1]: 48/17 - 32/17 d.
inline constexpr int32_t kNewtonStart = 1515870810, kNewtonSlope = -1010580540;
// Rounded to 16 bits.
constexpr int16_t ShortConstant(int32_t value) {
  const int64_t away = value < 0 ? -(int64_t{1} << 15) : int64_t{1} << 15;
  return static_cast<int16_t>((value + away) / (1 << 16));
}

}  // namespace fuselite::kernels
