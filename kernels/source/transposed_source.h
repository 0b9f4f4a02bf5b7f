// Left matrices that are stored transposed (BATCH_MATMUL's adj_x), turned into rows.
#pragma once

#include <memory>

#include "kernels/product/description.h"
#include "kernels/product/source.h"
#include "kernels/source/converted_image.h"

namespace fuselite::kernels {

// Transposes float32.
std::unique_ptr<Source> TransposedSource(int input, const ProductDescription& description);
// Transposes float32, rounded to bfloat16.
std::unique_ptr<Source> TransposedBf16Source(int input, const ProductDescription& description);
// Transposes integers, in a format that products read. `type`: int8 or uint8, or int16 with kWide.
std::unique_ptr<Source> TransposedSource(int input, const ProductDescription& description,
                                         DataType type, ActivationFormat format);

}  // namespace fuselite::kernels
