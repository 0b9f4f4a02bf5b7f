// WHERE: the coordinates of all elements that are not zero.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// (condition) -> int64 [count, rank], in the order of memory. The shape depends on the values: it
// is known where these are when the shape rule runs. Dense operands, one unit.
Result<std::unique_ptr<Kernel>> BuildWhere(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
