// Functions of one quantized value, made of the scalar calls of TFLite's reference kernels, so that
// they have their bits; and such functions as tables.
#pragma once

#include <functional>
#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// A unary operator whose input and output are both int8, uint8 or int16, as a function from
// quantized values to ones within the type's range. Fails where TFLite's kernel does: on scales
// that it does not take.
Result<std::function<int32_t(int32_t)>> MakeQuantizedFunction(const OpDescription& op);

// The 256 entries of a unary operator whose input and output are int8, or uint8: entry uint8(x) is
// uint8(y).
Result<std::vector<uint8_t>> MakeLookupTable(const OpDescription& op);

// The kernel of a unary operator of int16: a table of all 65536 values, of which a step takes one
// load. No tail.
Result<std::unique_ptr<Kernel>> BuildInt16Lookup(const OpDescription& op,
                                                 const BuildContext& context);

}  // namespace fuselite::kernels
