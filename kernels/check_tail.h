// Whether an operation's tail can be applied to what the operation computes.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// Whether the stages' types fit together from `source_type` to the output's, and every operand
// stays within its tensor for every output element.
Status CheckTail(const OpDescription& op, DataType source_type);

}  // namespace fuselite::kernels
