// Logistic and tanh in 16-bit fixed point, to the bit as TFLite's integer LSTM has them.
//
// The algorithm is gemmlowp's (fixedpoint.h): the exponential of a negative number from a Taylor
// series within a quarter and a product of exponentials of powers of two; 1 / (1 + x) by three
// steps of Newton's method. Every product keeps the high 16 bits of 32, rounded half away from
// zero.
#pragma once

#include <cstdint>

namespace fuselite::kernels {

// 1 / (1 + exp(-x)) with 15 fractional bits, of x with 12.
int16_t LogisticQ12(int16_t x);

// tanh(x) with 15 fractional bits, of x with 15 - `integer_bits`. Precondition: 0 to 6.
int16_t TanhFixed(int16_t x, int integer_bits);

}  // namespace fuselite::kernels
