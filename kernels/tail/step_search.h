// The thorough search behind FindFloatScale (float_scale.h), for scales with which its quick one
// found nothing.
#pragma once

#include <optional>

#include "kernels/tail/float_scale.h"
#include "runtime/isa.h"

namespace fuselite::kernels {

// Looks at the sums that occur alone, at those above and below zero apart, and at more neighbours
// of the scale and addends than the quick search; where all sums have one result, at that. Of the
// scales of trained networks that the quick search gives up on, it finds half or more. Takes about
// 2 microseconds, 4 where it fails. `isa` fuses multiplications and additions; holds under
// DefaultFloatState.
std::optional<FloatScale> SearchFloatScale(const FloatScaleQuery& query, Isa isa);

}  // namespace fuselite::kernels
