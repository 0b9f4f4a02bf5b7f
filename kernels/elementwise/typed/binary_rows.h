// Binary operators row by row: integers, and floats of which both inputs broadcast.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace fuselite::kernels {

// int8 and uint8 (MAXIMUM, MINIMUM only), int16, int32, uint32, int64; sums and products wrap
// around. A division by 0 is an error of the run.
Result<std::unique_ptr<Kernel>> BuildIntegerBinary(BinaryKind kind, const OpDescription& op);

// float32, any two shapes that broadcast; then `clamp`, then op.tail.
Result<std::unique_ptr<Kernel>> BuildBroadcastBinary(BinaryKind kind, const OpDescription& op,
                                                     const BuildContext& context, Tail clamp,
                                                     TailCandidate candidate);

}  // namespace fuselite::kernels
