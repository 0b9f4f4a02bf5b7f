// STABLEHLO_PAD's parameters.
#pragma once

#include "kernels/fields.h"

namespace fuselite::kernels {

// For each dimension: elements before the first (negative: elements that are cut off), behind the
// last, and between two neighbours.
struct StablehloPadParams {
  IntList low, high, interior;
};

}  // namespace fuselite::kernels
