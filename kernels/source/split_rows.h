// Rows of bytes in the three forms in which products of byte pairs read them.
#pragma once

#include "kernels/movement/copy_loops.h"

namespace fuselite::kernels {

// Writes 3 n bytes for the n = `row_bytes` at each index of `rows`: the values as uint8, those of
// int8 128 larger; as int8, those of uint8 128 smaller; and the magnitudes of the latter, 0 to 128.
// Pointers need no alignment; what is written neither overlaps nor lies in what is read.
using SplitRowsFunction = void(const std::byte* in, std::byte* out, const CopyDim& rows,
                               int64_t row_bytes);
// `is_signed`: the values are int8, not uint8. The result does not depend on `isa`.
SplitRowsFunction* SplitRowsFor(Isa isa, bool is_signed);

}  // namespace fuselite::kernels
