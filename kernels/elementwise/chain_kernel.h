// Elementwise chains of float32, or of bfloat16 in memory, around whoever takes rows through the
// stages.
#pragma once

#include "kernels/elementwise/chain_rows.h"
#include "kernels/operator.h"
#include "kernels/tail/rest.h"

namespace fuselite::kernels {

// The stages on input `flowing`, which has the output's shape or whole rows of it, which repeat:
// `tail` by `rows`, `rest` over what is stored then. Refuses what `rows` refuses, and rows that
// repeat in another way than the operands.
Result<KernelPlan> PlanChainKernel(const OpDescription& op, int flowing, Tail tail, TailRest rest,
                                   std::shared_ptr<const ChainRows> rows);

}  // namespace fuselite::kernels
