// float16 and bfloat16 numbers, converted in integer arithmetic: the same on every machine,
// whatever the rounding mode and the flags that flush subnormals.
//
// TFLite computes with them in float, and rounds after each operation.
#pragma once

#include <bit>
#include <cstdint>

namespace fuselite::kernels {

// Exact; NaNs stay NaNs.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t mantissa = half & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// Rounds to nearest, ties to even; too large ones become infinite.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // from 65520 on
  if (magnitude >= 0x38800000) {                      // from 2^-14 on: normal
    const uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
  }
  if (magnitude < 0x33000000) return sign;  // below 2^-25: half of the smallest subnormal
  // Subnormal: the 24-bit mantissa in units of 2^-24.
  const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
  const uint32_t kept = mantissa >> shift, rest = mantissa & ((1U << shift) - 1);
  const uint32_t tie = 1U << (shift - 1);
  const uint32_t up = rest > tie || (rest == tie && (kept & 1) != 0) ? 1 : 0;
  return static_cast<uint16_t>(sign | (kept + up));
}

inline float BFloat16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// The two as types of their own: floats in expressions, rounded where they are stored.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(FloatToHalf(value)) {}
  operator float() const { return HalfToFloat(bits); }  // NOLINT(google-explicit-constructor)
  static constexpr float kMax = 65504;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(FloatToBFloat16(value)) {}
  operator float() const { return BFloat16ToFloat(bits); }  // NOLINT(google-explicit-constructor)
  static constexpr float kMax = 0x1.FEp127F;
};

}  // namespace fuselite::kernels
