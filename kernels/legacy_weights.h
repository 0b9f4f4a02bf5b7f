// Weights as old converters wrote them.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// Dynamic-range models of old converters hold int8 weights in tensors of type uint8, whose zero
// point means nothing. Gives such inputs of `op` the type that their bytes have, and the scale that
// LiteRT takes: the first. Beside weights of int8 they stay what they are, and are refused as
// there.
void ReadLegacyWeights(OpDescription& op);

}  // namespace fuselite::kernels
