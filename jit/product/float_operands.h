// What every emitted kernel of floats asks of its operands.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// Whether precision and instructions allow bfloat16, else why not.
Status CheckBf16(const kernels::PlanContext& context);

// Input `x` and the output are float32 in memory, or bfloat16 where that is allowed, as it must be
// for operands of the tail; and code is emitted for the instructions.
Status CheckFloats(const kernels::OpDescription& op, const TensorInfo& x,
                   const kernels::PlanContext& context);

}  // namespace fuselite::jit
