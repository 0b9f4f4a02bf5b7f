// DEPTHWISE_CONV_2D and CONV_2D of float32, emitted: the contracts are
// kernels/depthwise_conv2d/depthwise_conv2d.h and kernels/conv2d/conv2d.h.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// Constant filters and bias. One channel with several filters is a product. Windows at the borders
// have code of their own that leaves the padding's multiplications out.
Result<kernels::KernelPlan> PlanDepthwiseConv2D(const kernels::OpDescription&,
                                                const kernels::PlanContext&);

// Plans a CONV_2D with constant filters in small groups as a depthwise convolution, else as a
// product.
Result<kernels::KernelPlan> PlanConv2D(const kernels::OpDescription&, const kernels::PlanContext&);

}  // namespace fuselite::jit
