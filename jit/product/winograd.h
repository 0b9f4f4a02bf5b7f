// CONV_2D by Winograd's algorithm, around emitted products.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// What kernels::PlanWinograd takes.
Result<kernels::KernelPlan> PlanWinogradF32(const kernels::OpDescription&,
                                            const kernels::PlanContext&);
// What kernels::PlanWinogradWith takes.
Result<kernels::KernelPlan> PlanWinogradF32With(const kernels::OpDescription& op,
                                                const kernels::PlanContext& context, int outputs);

}  // namespace fuselite::jit
