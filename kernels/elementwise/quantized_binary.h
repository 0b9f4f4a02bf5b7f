// ADD, SUB and MUL of int8 and uint8, to the bit of TFLite's reference kernels.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace fuselite::kernels {

// Whether the operands' scales and zero points are such as TFLite takes.
Status CheckQuantizedBinary(BinaryKind kind, const OpDescription& op);

// No tail. The vector version is ADD's, where one operand has the output's shape and the other can
// be read by a tail's stage.
Result<std::unique_ptr<Kernel>> BuildQuantizedBinary(BinaryKind kind, const OpDescription& op,
                                                     const BuildContext& context,
                                                     TailCandidate candidate);

}  // namespace fuselite::kernels
