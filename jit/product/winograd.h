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

// CONV_2D of bytes, as kernels::PlanIntegerWinograd takes it, where no instruction multiplies four
// bytes at a time: those take less than half as long as pairs of 16 bits.
Result<kernels::KernelPlan> PlanWinogradS8(const kernels::OpDescription&,
                                           const kernels::PlanContext&);
// As PlanWinogradS8, whatever it takes, and whatever instructions there are.
Result<kernels::KernelPlan> PlanWinogradS8Anyway(const kernels::OpDescription& op,
                                                 const kernels::PlanContext& context);

// CONV_2D of float32 activations that are quantized at run time, likewise.
Result<kernels::KernelPlan> PlanWinogradHybrid(const kernels::OpDescription&,
                                               const kernels::PlanContext&);
Result<kernels::KernelPlan> PlanWinogradHybridAnyway(const kernels::OpDescription& op,
                                                     const kernels::PlanContext& context);

}  // namespace fuselite::jit
