// Emitted float32 elementwise operators, and chains of them.
#pragma once

#include "kernels/operator.h"

namespace fuselite::jit {

// FUSELITE_ELEMENTWISE and the operators of one or two inputs that are stages of a tail, with
// op.tail. Refuses other types, both inputs broadcasting, and functions without an emitter in the
// first stage; later ones run over the stored values.
Result<kernels::KernelPlan> PlanElementwise(const kernels::OpDescription& op,
                                            const kernels::PlanContext& context);

}  // namespace fuselite::jit
