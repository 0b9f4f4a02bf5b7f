// FLOOR_DIV, FLOOR_MOD and POW: two inputs of one type that broadcast.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// POW of floats, and of integers by one exponent for all. Integers have the reference's bits.
Result<std::unique_ptr<Kernel>> BuildPowers(const OpDescription& op, const BuildContext& context);

// FLOOR_DIV of float32, int8, int16 and int32, and FLOOR_MOD of those integers, to the reference's
// bits. A run that divides by 0 fails.
Result<std::unique_ptr<Kernel>> BuildFloor(const OpDescription& op, const BuildContext& context);

}  // namespace fuselite::kernels
