// CONV_2D of float32 by Winograd's algorithm (kernels/winograd/algorithm.h), around a micro-kernel
// for its products.
#pragma once

#include "kernels/operator.h"
#include "kernels/winograd/cut.h"

namespace fuselite::kernels {

// The convolution with another order of sums than a plain product's, so not for precision=strict.
// float32, 3x3 windows of stride 1, also dilated, or 2, without groups, constant filters. Refuses,
// besides, where a plain product is estimated to take less time. `plain` makes the micro-kernel of
// that product.
Result<KernelPlan> PlanWinograd(const OpDescription& op, const PlanContext& context,
                                const MakeWinogradMicroKernel& micro_kernel,
                                const MakeWinogradMicroKernel& plain);

// As PlanWinograd(), with tiles of `outputs` x `outputs`, whatever it takes: 2, or with a stride of
// 1 also 4.
Result<KernelPlan> PlanWinogradWith(const OpDescription& op, const PlanContext& context,
                                    int outputs, const MakeWinogradMicroKernel& micro_kernel);

// As PlanWinograd() and PlanWinogradWith(), around products vectorized with Highway: where nothing
// is emitted.
Result<KernelPlan> PlanHighwayWinograd(const OpDescription& op, const PlanContext& context);
Result<KernelPlan> PlanHighwayWinogradWith(const OpDescription& op, const PlanContext& context,
                                           int outputs);

}  // namespace fuselite::kernels
