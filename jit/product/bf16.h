// float32 rounded to bfloat16 by the instructions of AVX512-BF16: to the nearest, ties to even, a
// NaN becoming quiet. Denormals become zero, as products of bfloat16 take them for zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/movement/copy_loops.h"

namespace fuselite::jit {

// to[i] = from[i]; neither needs alignment, nothing behind `count` values is touched.
void RoundToBf16(const float* from, int64_t count, uint16_t* to);

// Rounds the `row_bytes` bytes of float32 at each index of `rows` (LeftForm::form); a zero stands
// behind an odd number of values.
void RoundRowsToBf16(const std::byte* in, std::byte* out, const kernels::CopyDim& rows,
                     int64_t row_bytes);

// The other way, of `row_bytes` bytes of bfloat16.
void WidenRowsOfBf16(const std::byte* in, std::byte* out, const kernels::CopyDim& rows,
                     int64_t row_bytes);

// to[i] = even[i] in the lower half, odd[i] in the upper one; a null `odd` is zeros.
void RoundToBf16Pairs(const float* even, const float* odd, int64_t count, uint32_t* to);

}  // namespace fuselite::jit
