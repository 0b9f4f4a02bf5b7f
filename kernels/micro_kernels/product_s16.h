// Matrix products of integers whose tiles are vectorized with Highway: pairs of int16 by pairs of
// int16, for activations of 8 and of 16 bits and for those that are quantized at run time. Exact,
// to the bit of the reference.
#pragma once

#include "kernels/product/product_kernel.h"

namespace fuselite::kernels {

// CONV_2D, FULLY_CONNECTED, BATCH_MATMUL and TRANSPOSE_CONV of 8-bit or 16-bit activations, or
// float32 ones, with weights of at most 8 bits, or both of 16 bits. Of float32 ones whose terms are
// scaled, those of kernels/micro_kernels/scaled_terms.h.
Result<KernelPlan> PlanHighwayProductS16(const OpDescription& op, const PlanContext& context);

// The products of an operator, whatever their types: these or those of
// kernels/micro_kernels/product_f32.h.
Result<KernelPlan> PlanHighwayProduct(const OpDescription& op, const PlanContext& context);

}  // namespace fuselite::kernels
