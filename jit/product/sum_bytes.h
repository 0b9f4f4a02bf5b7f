// Sums of rows of bytes.
#pragma once

#include <cstdint>

namespace fuselite::jit {

// The sum of `n` unsigned bytes, each xor `flip`.
int64_t SumBytes(const uint8_t* values, int64_t n, uint8_t flip);

}  // namespace fuselite::jit
