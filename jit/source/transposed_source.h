// Left matrices that are stored transposed (BATCH_MATMUL's adj_x), turned into rows.
#pragma once

#include <memory>

#include "jit/source/converted_image.h"
#include "kernels/product/description.h"
#include "kernels/product/source.h"

namespace fuselite::jit {

// Transposes float32.
std::unique_ptr<kernels::Source> TransposedSource(int input,
                                                  const kernels::ProductDescription& description);
// The same, rounded to bfloat16.
std::unique_ptr<kernels::Source> TransposedBf16Source(
    int input, const kernels::ProductDescription& description);
// Transposes 8-bit values, in a format that products read. `type`: int8 or uint8.
std::unique_ptr<kernels::Source> TransposedSource(int input,
                                                  const kernels::ProductDescription& description,
                                                  DataType type, ActivationFormat format);

}  // namespace fuselite::jit
