// SELECT and SELECT_V2: of two tensors, the elements that a third of bool says.
#pragma once

#include "kernels/elementwise/broadcast.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// How the condition, the two operands and the output are walked through together, in this order.
BroadcastPlan PlanSelect(const OpDescription& op);

// Selects with vectors; elements have 1, 2, 4 or 8 bytes.
Result<std::unique_ptr<Kernel>> BuildSelectHighway(const OpDescription& op,
                                                   const BuildContext& context);

}  // namespace fuselite::kernels
