// REVERSE_V2 and REVERSE_SEQUENCE: dimensions backwards.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// (input, axes).
Result<Movement> PlanReverse(const OpDescription& op);

// (input, lengths [batch]): of image b, the first lengths[b] indices of seq_dim are reversed, the
// others stay. Lengths are run-time values: one out of range fails the run. Dense operands.
struct ReverseSequenceParams {
  int32_t seq_dim;
  int32_t batch_dim;
};
Result<std::unique_ptr<Kernel>> BuildReverseSequence(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
