// Quantization of float32 activations at run time, as TFLite's hybrid kernels do it, to the bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fuselite::kernels {

// x ~ scale * q, where q = clamp(round(x * inverse) + offset, min, 127) - offset. Halves are
// rounded away from zero, before the offset is added: pixels in [-1, 1] lie on halves, all of them.
struct DynamicScale {
  float scale = 1, inverse = 0;
  int32_t offset = 0;
  int32_t min = -127;
};

// The extremes of the values that share a scale: NaN both where a value is not finite.
struct DynamicRange {
  float min = 0, max = 0;
};

// symmetric: scale = max|x| / 127. asymmetric: 255 steps from min(0, min) to max(0, max), shifted
// so that 0 is a step. Values that are all 0 give q = 0. A NaN or infinity among them gives q = 0
// with scale NaN: what is not a number stays visible instead of turning into an arbitrary one.
inline DynamicScale MakeDynamicScale(const DynamicRange& range, bool asymmetric) {
  DynamicScale result;
  if (!(std::isfinite(range.min) && std::isfinite(range.max))) {
    result.scale = std::numeric_limits<float>::quiet_NaN();
    return result;
  }
  if (!asymmetric) {
    const float largest = std::max(std::abs(range.min), std::abs(range.max));
    if (largest == 0) return result;
    result.scale = largest / 127;
    result.inverse = 127 / largest;
  } else {
    const float low = std::min(0.0f, range.min), high = std::max(0.0f, range.max);
    if (low == high) return result;
    const float width = high - low;
    if (!std::isfinite(width)) {
      result.scale = std::numeric_limits<float>::quiet_NaN();
      return result;
    }
    // The width is rounded to float32 before all else is computed in double precision.
    const double scale = double{width} / 255;
    // Zero is placed from the end whose own rounding is the smaller one: of rows at random, so that
    // a branch would be predicted wrongly every other time.
    const double below = low / scale, above = high / scale;
    const double ends[2] = {127 - above, -128 - below};
    const double zero = ends[128 + std::abs(below) < 127 + std::abs(above)];
    result.scale = static_cast<float>(scale);
    result.inverse = 1 / result.scale;
    // Halves away from zero, as std::round, without its call.
    const double cut = std::clamp(zero, -128.0, 127.0);
    result.offset = static_cast<int32_t>(cut + std::copysign(0x1.fffffffffffffp-2, cut));
    result.min = -128;
  }
  // Values this small vanish beside any bias.
  if (!std::isfinite(result.inverse)) result.inverse = 0;
  return result;
}

inline int16_t QuantizeDynamically(float x, const DynamicScale& scale) {
  const float q = std::round(x * scale.inverse);
  const auto least = static_cast<float>(scale.min - scale.offset),
             most = static_cast<float>(127 - scale.offset);
  // Comparisons that a NaN (infinity times 0) fails.
  return static_cast<int16_t>(q > least ? (q < most ? q : most) : least);
}

// Quantizes `rows` rows of `values`, `pitch` apart, that share a scale; they become dense.
inline DynamicScale QuantizeDynamically(const float* x, int64_t rows, int64_t values, int64_t pitch,
                                        bool asymmetric, int16_t* to) {
  if (rows * values == 0) return {};
  DynamicRange range{x[0], x[0]};
  for (int64_t i = 0; i < rows * values; ++i) {
    const float value = x[i / values * pitch + i % values];
    const float poison = value - value;  // NaN where it is not finite
    range.min = std::min(range.min, value) + poison;
    range.max = std::max(range.max, value) + poison;
  }
  const DynamicScale scale = MakeDynamicScale(range, asymmetric);
  for (int64_t i = 0; i < rows * values; ++i) {
    to[i] = QuantizeDynamically(x[i / values * pitch + i % values], scale);
  }
  return scale;
}

}  // namespace fuselite::kernels
