// FLOOR_DIV, FLOOR_MOD and POW: two inputs of one type that broadcast.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// POW by one exponent for all: whole numbers, and 1/2 of floats, with vectors;
// other exponents of floats number by number. Integers have the reference's bits.
Result<std::unique_ptr<Kernel>> BuildPowers(const OpDescription& op, const BuildContext& context);

}  // namespace fuselite::kernels
