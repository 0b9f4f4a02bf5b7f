// One spelling for elementwise operations that differ in how their shapes are written.
//
// [16,4,32,1] minus [16,4,1,1] and [64,32] minus [64,1] are the same computation. Kernels see rows
// of the innermost dimension; the first would be rows of one element. So operations are planned in
// the second form.
#pragma once

#include <optional>

#include "kernels/operator.h"

namespace fuselite::kernels {

// `op` over the same memory in as few dimensions as its operands allow: dimensions of 1 are
// dropped, neighbours joined where every operand steps through both as through one. The tail's
// strides count the new rows. nullopt where there would be no fewer, or where the new form could
// not say how an operand lies. Precondition: op.op->elementwise, and kernels::Infer has accepted
// `op`.
std::optional<OpDescription> InFewestDimensions(const OpDescription& op);

}  // namespace fuselite::kernels
