// DEPTHWISE_CONV_2D on 8-bit values emitted.
#pragma once

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

namespace fuselite::jit {

// int8 or uint8 activations with symmetric constant weights, depth multiplier 1. On AVX-VNNI whole
// blocks of 32 channels only.
Result<std::unique_ptr<Kernel>> BuildDepthwiseInt8(const kernels::OpDescription& op,
                                                   const kernels::DepthwiseConv2DShape& shape,
                                                   const kernels::BuildContext& context);

}  // namespace fuselite::jit
