// Bytes looked up in a table by AVX512-VBMI's permutations of whole vectors.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// out[i] = table[in[i]] for i < n. `out` may be `in`.
using BytePermutes = void(std::span<const uint8_t, 256> table, const uint8_t* in, uint8_t* out,
                          int64_t n);

// Null where `isa` does not have the instructions.
BytePermutes* BytePermutesFor(Isa isa);

}  // namespace fuselite::kernels
