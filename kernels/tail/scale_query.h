// What the searches of float_scale.cc and scale_lanes.h read from a query.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/tail/float_scale.h"
#include "kernels/tail/scale_steps.h"

namespace fuselite::kernels {

// Where sums reach more steps nothing is tried.
inline constexpr double kMostReached = 0x1p30;
// A scale times so many sums is exact in doubles.
inline constexpr double kMostShifted = 0x1p22;

// 2^exponent, where that is neither too large for a double nor denormal: ldexp is a call, and four
// of them were an eighth of the search.
inline double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// The steps that sums up to `largest` reach, and the next one, of `steps`.
inline int Reached(double scale, int64_t largest, int32_t steps) {
  if (steps <= 0 || largest <= 0) return 0;
  const double reached = std::min<double>(static_cast<double>(largest) * scale, steps);
  return std::min(static_cast<int>(reached) + 2, steps);
}

inline StepPlaces PlacesOf(const SumScale& scale) {
  if (scale.real > 0) return {.first = 0.5 / scale.real, .distance = 1 / scale.real};
  const int right = std::max(-scale.shift, 0), left = std::max(scale.shift, 0);
  const double unit = PowerOfTwo(30 - left) / scale.multiplier;
  return {.first = (PowerOfTwo(right) - (right > 0 ? 1 : 0)) * unit,
          .distance = PowerOfTwo(right + 1) * unit};
}

// Of what is rounded, the zero point.
inline int32_t OffsetOf(const FloatScaleQuery& q) { return q.addend_has_sign ? 0 : q.zero_point; }

// FloatScale::shift. Where steps are `distance` sums apart, up to `reach`.
inline int32_t ShiftOf(const FloatScaleQuery& q, double distance, double reach) {
  const double shift = OffsetOf(q) * distance;
  if (std::abs(shift) > kMostShifted || reach + std::abs(shift) >= kExactInFloat - 1) return 0;
  const auto whole = static_cast<int32_t>(shift + (shift < 0 ? -0.5 : 0.5));
  const bool wraps = q.least + whole < INT32_MIN || q.largest + whole > INT32_MAX;
  return wraps ? 0 : whole;
}

}  // namespace fuselite::kernels
