// Functions of one 8-bit value as tables, built with the scalar calls of TFLite's reference
// kernels, so that they have their bits.
#pragma once

#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// The 256 entries of a unary operator whose input and output are int8, or uint8: entry uint8(x) is
// uint8(y). Fails where TFLite's kernel does: on scales that it does not take.
Result<std::vector<uint8_t>> MakeLookupTable(const OpDescription& op);

}  // namespace fuselite::kernels
