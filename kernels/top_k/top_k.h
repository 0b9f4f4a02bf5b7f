// TOPK_V2: the k largest values of each row and where they are.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// (input, k) -> values, indices (int32): descending, the first of equal values first, NaNs last.
// One unit is one row. Dense operands.
Result<std::unique_ptr<Kernel>> BuildTopK(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
