// Sums of rows of bytes, as the zero points of weights need them.
#pragma once

#include <cstdint>

#include "kernels/product/byte_groups.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// Shorter rows are for a loop of their own: the vectors here need so many bytes to load.
constexpr int64_t kShortestSummed = 16;

// Adds to sums[i] the `length` values of row i, each XORed with `flip`, as unsigned ones. Reads
// nothing beside them; rows may overlap. Precondition: length >= kShortestSummed.
void AddByteSums(Isa isa, uint8_t flip, const ByteRows& rows, int64_t length, int32_t* sums);

}  // namespace fuselite::kernels
