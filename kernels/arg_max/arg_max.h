// ARG_MAX and ARG_MIN: where the extreme value along an axis is; the first of equal ones.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct ArgMaxParams {
  DataType output_type;  // int32 or int64
};

// NaNs are passed over: the index is that of the extreme number, 0 where there is none. One unit
// is one index of the result. Dense operands.
Result<std::unique_ptr<Kernel>> BuildArgMax(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildArgMin(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
