// The thorough search behind FindFloatScale (float_scale.h), for scales with which its quick one
// found nothing.
#pragma once

#include <optional>

#include "kernels/tail/float_scale.h"
#include "runtime/isa.h"

namespace fuselite::kernels {

// Steps are so near to a whole sum that doubles do not tell on which side.
inline constexpr double kUncertain = 0x1p-16;
// Where sums reach more steps nothing is tried.
inline constexpr double kMostSteps = 0x1p30;

// Step k above zero, counted from 1, and step 1 - k below it begin behind the place
// first + (k - 1) distance.
struct StepPlaces {
  double first, distance;
  double Of(int32_t k) const { return first + (k > 0 ? k - 1 : -k) * distance; }
};

// Which addends, the zero point left out, put every step where it belongs: between the two, up to
// roundings.
struct AddendRange {
  double low, high;
};

// Looks at the sums that occur alone, at those above and below zero apart, at neighbours of the
// scale and at several addends, and moves sums where no pair holds everywhere; where all sums have
// one result, at that. `places`: of query.scale. `isa` fuses multiplications and additions; holds
// under DefaultFloatState.
std::optional<FloatScale> SearchFloatScale(const FloatScaleQuery& query, const StepPlaces& places,
                                           Isa isa);

}  // namespace fuselite::kernels
