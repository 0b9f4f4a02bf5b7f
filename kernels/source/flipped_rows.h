// Rows of int8 as uint8, 128 larger: what dot products of bytes read.
#pragma once

#include "kernels/movement/copy_loops.h"

namespace fuselite::kernels {

// Copies `row_bytes` bytes at each index of `rows` with their sign bits inverted. Pointers need no
// alignment; what is written neither overlaps nor lies in what is read.
using FlipRowsFunction = void(const std::byte* in, std::byte* out, const CopyDim& rows,
                              int64_t row_bytes);
FlipRowsFunction* FlipRowsFor(Isa isa);
FlipRowsFunction FlipRowsByBytes;  // what has no vectors

}  // namespace fuselite::kernels
