// CONV_2D of 8-bit integers by Winograd's algorithm in whole numbers
// (kernels/winograd/integer_algorithm.h): a product of pairs of 16 bits for each of its terms, 2.25
// times fewer multiplications than those of the plain product. To the bit of the reference.
#pragma once

#include "kernels/operator.h"
#include "kernels/winograd/cut.h"

namespace fuselite::kernels {

// int8 or uint8, what DescribeWinograd takes. Refuses, besides, where a plain product, whose
// micro-kernel `plain` makes, is estimated to take less time. `micro_kernel` makes that of a
// product of int16 values that stores int32 sums.
Result<KernelPlan> PlanIntegerWinograd(const OpDescription& op, const PlanContext& context,
                                       const MakeWinogradMicroKernel& micro_kernel,
                                       const MakeWinogradMicroKernel& plain);

// As PlanIntegerWinograd(), whatever it takes.
Result<KernelPlan> PlanIntegerWinogradAnyway(const OpDescription& op, const PlanContext& context,
                                             const MakeWinogradMicroKernel& micro_kernel);

}  // namespace fuselite::kernels
