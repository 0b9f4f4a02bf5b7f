// Winograd's algorithm around products that are vectorized with Highway.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// CONV_2D of float32 (kernels/winograd/winograd.h).
Result<KernelPlan> PlanHighwayWinograd(const OpDescription& op, const PlanContext& context);

}  // namespace fuselite::kernels
