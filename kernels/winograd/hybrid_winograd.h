// CONV_2D of float32 activations, quantized at run time, by Winograd's algorithm in whole numbers:
// the sums of kernels/winograd/integer_winograd.h, to the bit of the reference.
#pragma once

#include "kernels/operator.h"
#include "kernels/winograd/cut.h"

namespace fuselite::kernels {

// float32 by int8 or int4, what DescribeWinograd takes. Refuses, besides, where a plain product of
// bytes, whose micro-kernel `plain` makes, is estimated to take less time. `micro_kernel` makes
// that of a product of int16 values that stores int32 sums.
Result<KernelPlan> PlanHybridWinograd(const OpDescription& op, const PlanContext& context,
                                      const MakeWinogradMicroKernel& micro_kernel,
                                      const MakeWinogradMicroKernel& plain);

// As PlanHybridWinograd(), whatever it takes.
Result<KernelPlan> PlanHybridWinogradAnyway(const OpDescription& op, const PlanContext& context,
                                            const MakeWinogradMicroKernel& micro_kernel);

}  // namespace fuselite::kernels
