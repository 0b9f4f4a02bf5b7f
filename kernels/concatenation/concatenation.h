// CONCATENATION and PACK: inputs side by side along an axis, or along one that is added for them.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

struct ConcatenationParams {
  int32_t axis;
  Activation activation;  // kNone: no host computes another
};

struct PackParams {
  int32_t values_count;
  int32_t axis;
};

// Refuses uint8 operands that are quantized otherwise than the output: those are requantized.
Result<Movement> PlanConcatenation(const OpDescription& op);
Result<Movement> PlanPack(const OpDescription& op);

// Any CONCATENATION. uint8 operands of another scale or zero point are converted in float, as the
// host does it: round(x s + b) + z with s = scale / output scale, b = -zero_point s.
Result<std::unique_ptr<Kernel>> BuildConcatenationReference(const OpDescription&,
                                                            const BuildContext&);
// Requantizing ones only; the reference's bits.
Result<std::unique_ptr<Kernel>> BuildConcatenationHighway(const OpDescription&,
                                                          const BuildContext&);

}  // namespace fuselite::kernels
