// The one place for the rounding of quantized arithmetic: TFLite's, to the bit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/fields.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// real ~ multiplier * 2^(shift - 31), multiplier in [2^30, 2^31), or both 0 for real == 0.
// Precondition: real is finite and not negative. Too small ones (shift < -31) become 0.
struct FixedPoint {
  int32_t multiplier = 0;
  int32_t shift = 0;
};

inline FixedPoint ToFixedPoint(double real) {
  if (real == 0.0) return {};
  // What frexp and llround give, without two calls for each channel: 31 of the fraction's 53 bits,
  // rounded half up.
  const auto bits = std::bit_cast<uint64_t>(real);
  auto shift = static_cast<int>(bits >> 52) - 1022;
  const uint64_t fraction = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  auto multiplier = static_cast<int64_t>((fraction + (1 << 21)) >> 22);
  if (multiplier == int64_t{1} << 31) {
    multiplier /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<int32_t>::max(), 30};  // as TFLite saturates it
  return {static_cast<int32_t>(multiplier), shift};
}

// The high 32 bits of 2ab, rounded to the nearest, halves up; saturates for a == b == -2^31.
inline int32_t SaturatingRoundingDoublingHighMul(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min()) {
    return std::numeric_limits<int32_t>::max();
  }
  const int64_t product = static_cast<int64_t>(a) * b;
  const int64_t nudge = product >= 0 ? (int64_t{1} << 30) : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

// x * by, rounded twice, the second time with ties upwards, as TFLite's vectors do it.
inline int32_t ScaleTiesUpwards(int64_t x, const FixedPoint& by) {
  const int left = std::max(by.shift, 0), right = std::max(-by.shift, 0);
  const int64_t shifted = std::clamp<int64_t>(x << left, std::numeric_limits<int32_t>::min(),
                                              std::numeric_limits<int32_t>::max());
  const int64_t high =
      SaturatingRoundingDoublingHighMul(static_cast<int32_t>(shifted), by.multiplier);
  const int64_t half = right > 0 ? int64_t{1} << (right - 1) : 0;
  return static_cast<int32_t>((high + half) >> right);
}

// x / 2^exponent, rounded half away from zero. Precondition: 0 <= exponent <= 31.
inline int32_t RoundingDivideByPowerOfTwo(int32_t x, int exponent) {
  const int32_t mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t remainder = x & mask;
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

// x * multiplier * 2^(shift - 31) with two roundings; a left shift comes first and wraps around.
inline int32_t MultiplyByQuantizedMultiplier(int32_t x, int32_t multiplier, int32_t shift) {
  const int left = std::max(shift, 0);
  const int right = std::max(-shift, 0);
  const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  return RoundingDivideByPowerOfTwo(SaturatingRoundingDoublingHighMul(shifted, multiplier), right);
}

// Scales 64-bit accumulators (16-bit activations): real ~ multiplier * 2^-shift, the multiplier
// below 2^15, shift from 1 to 46.
struct WideFixedPoint {
  int32_t multiplier = 0, shift = 1;
};

// Precondition: fixed.shift <= 14.
inline WideFixedPoint ToWideFixedPoint(const FixedPoint& fixed) {
  const bool rounds = fixed.multiplier < 0x7FFF0000;
  return {rounds ? (fixed.multiplier + (1 << 15)) >> 16 : 0x7FFF, 15 - fixed.shift};
}

// One rounding, half up. The result wraps around where it does not fit into 32 bits.
inline int32_t MultiplyWide(int64_t x, const WideFixedPoint& by) {
  return static_cast<int32_t>((x * by.multiplier + (int64_t{1} << (by.shift - 1))) >> by.shift);
}

// Precondition: shift <= 14; the result fits into 32 bits.
inline int32_t MultiplyByQuantizedMultiplier64(int64_t x, int32_t multiplier, int32_t shift) {
  return MultiplyWide(x, ToWideFixedPoint({multiplier, shift}));
}

// Fixed point of 16 bits, as TFLite's hard-swish computes: numbers in [-2^15, 2^15).
inline int32_t Saturate16(int32_t x) { return std::clamp(x, -32768, 32767); }

// The high 16 bits of 2ab, rounded to the nearest, halves up; saturates for a == b == -2^15.
inline int32_t RoundingHighMul16(int32_t a, int32_t b) {
  const int32_t product = a * b;
  if (a == -32768 && b == -32768) return 32767;
  return (product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15);
}

// The high 16 bits of 2ab, rounded to zero; saturates for a == b == -2^15.
inline int32_t HighMul16(int32_t a, int32_t b) {
  return a == -32768 && b == -32768 ? 32767 : a * b / (1 << 15);
}

// The multiplier in 2^15ths, rounded.
inline int32_t ToMultiplier16(const FixedPoint& fixed) {
  return fixed.multiplier >= std::numeric_limits<int32_t>::max() - (1 << 15)
             ? 32767
             : (fixed.multiplier + (1 << 15)) >> 16;
}

// x 2^-exponent, rounded, with an exponent of up to 31. From 16 on the mask of the bits that are
// shifted out is -1 on 16 bits: as in the reference, the result is -1 of negative numbers then, and
// 1 of all others.
inline int32_t RoundingDivide16(int32_t x, int exponent) {
  const auto mask = static_cast<int16_t>((int64_t{1} << exponent) - 1);
  const int32_t remainder = x & mask, threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

// The smallest and the largest value of a quantized type. Precondition: an integer type of at most
// 32 bits.
void QuantizedTypeRange(DataType type, int32_t* min, int32_t* max);

// The range that a fused activation leaves of a quantized type: the type's own for kNone, and for
// kTanh and kSignBit, which TFLite's quantized kernels ignore. Bounds are
// zero_point + round(bound / scale), cut to the type's range. Fails where that leaves 32 bits.
Status QuantizedActivationRange(Activation activation, DataType type,
                                const Quantization& quantization, int32_t* min, int32_t* max);

// What scales the sums of products x * w to the output, per entry of `weights.scales`:
// x.scale * weights.scales[c] / output.scale in double precision, the product rounded to float
// first where `float_product`: TFLite has both ways, and they differ in the multiplier's last bits.
// Fails on scales that are not positive and finite.
Result<std::vector<double>> OutputScales(const Quantization& x, const Quantization& weights,
                                         const Quantization& output, bool float_product);
// Whether OutputScales() fails.
Status CheckOutputScales(const Quantization& x, const Quantization& weights,
                         const Quantization& output, bool float_product);

}  // namespace fuselite::kernels
