// DEPTHWISE_CONV_2D and CONV_2D in integers, emitted: the contracts are
// kernels/depthwise_conv2d/depthwise_conv2d.h and kernels/conv2d/conv2d.h.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// int8 or uint8 with constant filters of the same type. To the bit of the reference.
Result<kernels::KernelPlan> PlanDepthwiseConv2DInt8(const kernels::OpDescription&,
                                                    const kernels::PlanContext&);

// float32, quantized at run time, with constant int8 filters, of several channels where there are
// several filters for each. Up to the tail's functions, to the bit of the reference.
Result<kernels::KernelPlan> PlanDepthwiseConv2DHybrid(const kernels::OpDescription&,
                                                      const kernels::PlanContext&);

// CONV_2D: with constant filters in groups of 2, 4 or 8 inputs and as many outputs as a depthwise
// convolution is, else as a product.
Result<kernels::KernelPlan> PlanConv2DInt8(const kernels::OpDescription&,
                                           const kernels::PlanContext&);
Result<kernels::KernelPlan> PlanConv2DHybrid(const kernels::OpDescription&,
                                             const kernels::PlanContext&);

}  // namespace fuselite::jit
