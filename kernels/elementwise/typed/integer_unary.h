// NEG, ABS and SIGN of plain integers, SIGN of float64.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// Wraps around where the result does not fit, as two's complement does.
Result<std::unique_ptr<Kernel>> BuildIntegerUnary(const OpDescription& op);
// Builds the kernels of integers.
Result<std::unique_ptr<Kernel>> BuildIntegerUnaryHighway(const OpDescription& op,
                                                         const BuildContext& context);

}  // namespace fuselite::kernels
