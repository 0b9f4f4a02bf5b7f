// DEPTHWISE_CONV_2D emitted: the contract is kernels/depthwise_conv2d/depthwise_conv2d.h.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// float32, depth multiplier 1, constant filters and bias.
// Windows at the borders have code of their own that leaves the padding's multiplications out.
Result<kernels::KernelPlan> PlanDepthwiseConv2D(const kernels::OpDescription&,
                                                const kernels::PlanContext&);

}  // namespace fuselite::jit
