// What the searches of float_scale.cc and scale_lanes.h read from a query, and what comes out of
// the pairs that they find.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/tail/float_scale.h"
#include "kernels/tail/scale_steps.h"

namespace fuselite::kernels {

// Where sums reach less of a step than this nothing is reached but zero: what moves steps towards
// it is at most 1/4 of one.
inline constexpr double kLeastReached = 0.125;
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

// Where the first step's place is, in parts of the steps' distance.
inline double FirstPart(const SumScale& scale) {
  const bool rounds_twice = scale.real <= 0 && scale.shift < 0;
  return rounds_twice ? 0.5 - PowerOfTwo(scale.shift - 1) : 0.5;
}

inline StepPlaces PlacesOf(const SumScale& scale) {
  const double distance = 1 / scale.value();
  return {.first = FirstPart(scale) * distance, .distance = distance};
}

// The zero point that is part of what is rounded.
inline int32_t OffsetOf(const FloatScaleQuery& q) { return q.addend_has_sign ? 0 : q.zero_point; }

// FloatScale::shift. Where steps are `distance` sums apart, up to `reach`.
inline int32_t ShiftOf(const FloatScaleQuery& q, double distance, double reach) {
  const double shift = OffsetOf(q) * distance;
  if (std::abs(shift) > kMostShifted || reach + std::abs(shift) >= kExactInFloat - 1) return 0;
  const auto whole = static_cast<int32_t>(shift + (shift < 0 ? -0.5 : 0.5));
  const bool wraps = q.least + whole < INT32_MIN || q.largest + whole > INT32_MAX;
  return wraps ? 0 : whole;
}

// What TFLite makes of a sum.
inline int32_t IntegerResult(const FloatScaleQuery& q, int64_t sum) {
  const int64_t result = int64_t{q.scale.Apply(static_cast<int32_t>(sum))} + q.zero_point;
  return static_cast<int32_t>(std::clamp<int64_t>(result, q.min, q.max));
}

// What is emitted makes of it.
inline int32_t FloatResult(const FloatScaleQuery& q, const FloatScale& pair, int64_t sum) {
  const int64_t shifted = sum + pair.shift;
  const auto moved = static_cast<int32_t>(shifted + (shifted == pair.up) - (shifted == pair.down));
  const auto x = static_cast<float>(moved);
  const float addend = q.addend_has_sign ? std::copysign(pair.addend, x) : pair.addend;
  const double rounded =
      std::nearbyint(std::fma(x, pair.scale, addend)) + q.zero_point - OffsetOf(q);
  return static_cast<int32_t>(std::clamp<double>(rounded, q.min, q.max));
}

// Whether what is moved is then right, and neither is moved onto the other. Sums that are moved
// must be so small that their neighbours are floats, too.
inline bool MovesRight(const FloatScaleQuery& q, const FloatScale& pair) {
  if (pair.moves_down() && pair.moves_up() && std::abs(pair.down - pair.up) < 3) return false;
  const auto is_right = [&](int64_t shifted) {
    const int64_t sum = shifted - pair.shift;
    return std::abs(shifted) <= static_cast<int64_t>(kExactInFloat / 2) &&
           FloatResult(q, pair, sum) == IntegerResult(q, sum);
  };
  return (!pair.moves_down() || is_right(pair.down)) && (!pair.moves_up() || is_right(pair.up));
}

// What moving costs a vector's code, for comparison: less where sums are moved down alone.
inline int MovesOf(const FloatScale& pair) { return pair.moves_down() + 2 * pair.moves_up(); }

}  // namespace fuselite::kernels
