// Matrix products of activations that are quantized at run time, whose terms are scaled and summed
// in float32: those of TRANSPOSE_CONV.
#pragma once

#include "kernels/product/product_kernel.h"

namespace fuselite::kernels {

// `description`, whose terms are scaled, with weights of at most 8 bits.
Result<KernelPlan> PlanScaledTerms(const OpDescription& op, const ProductDescription& description,
                                   const PlanContext& context);

}  // namespace fuselite::kernels
