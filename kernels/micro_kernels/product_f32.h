// Matrix products of float32 whose tiles are vectorized with Highway.
#pragma once

#include "kernels/product/product_kernel.h"

namespace fuselite::kernels {

// Tiles of out = min(max(sum + bias, min), max); what is left of the tail is problem->rest's.
// kUnsupported where `isa` has no vector target.
Result<std::shared_ptr<const MicroKernel>> MakeHighwayMicroKernelF32(const DepthRuns& depth,
                                                                     const ProductProblem& problem,
                                                                     float min, float max, Isa isa);

// CONV_2D, FULLY_CONNECTED, BATCH_MATMUL and TRANSPOSE_CONV of float32 operands, with any output.
Result<KernelPlan> PlanHighwayProductF32(const OpDescription& op, const PlanContext& context);

}  // namespace fuselite::kernels
