// The two 16-bit floating-point formats, as bits: conversions to and from float.
//
// Portable and independent of the rounding mode and of flags that flush denormals. Rounding is to
// nearest, ties to even; a NaN stays a NaN (quiet, its upper payload bits kept), overflow is
// infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace fuselite {

// IEEE 754 binary16: 5 exponent bits, 10 of mantissa.
constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = half >> 10 & 0x1F, mantissa = half & 0x3FFu;
  if (exponent == 0x1F) {  // infinity or NaN, made quiet
    const uint32_t quiet = mantissa ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13 | quiet);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // A denormal half is a normal float: mantissa * 2^-24.
  const int shift = std::countl_zero(mantissa) - 21;  // brings the leading one to bit 10
  return std::bit_cast<float>(sign | static_cast<uint32_t>(113 - shift) << 23 |
                              (mantissa << shift & 0x3FFu) << 13);
}

constexpr uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7FFFFFFFu;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (magnitude > 0x7F800000u) {
    return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
  }
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // from 65520 on: rounds to 2^16
  if (magnitude >= 0x38800000u) {                       // from 2^-14 on: normal
    const uint32_t odd = magnitude >> 13 & 1;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
  }
  if (magnitude < 0x33000000u) return sign;  // below 2^-25: half of the smallest denormal
  // Denormal: the 24-bit mantissa shifted to units of 2^-24.
  const uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
  const uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1);
  const uint32_t tie = 1u << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > tie || (rest == tie && (kept & 1)))));
}

// bfloat16: the upper half of a float.
constexpr float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

constexpr uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

}  // namespace fuselite
