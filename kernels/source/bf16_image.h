// An image of float32 as products of bfloat16 read it: padded, and rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/product/description.h"
#include "kernels/product/source.h"
#include "kernels/source/padded_rows.h"

namespace fuselite::kernels {

// to[i] = from[i] in bfloat16; neither needs alignment, nothing behind `count` values is touched.
using RoundFunction = void(const float* from, int64_t count, uint16_t* to);

// Dense copies of `batch` images with zeros around them, cut to what the windows reach.
class Bf16Image {
 public:
  // Pixels of the input have `channels` values and are `pitch` values apart.
  Bf16Image(const Window& window, int64_t batch, int64_t channels, int64_t pitch,
            RoundFunction* round);

  // These describe the copy.
  int64_t pixel_bytes() const { return image_.pixel; }
  int64_t row_bytes() const { return pixel_bytes() * image_.width; }
  int64_t image_bytes() const { return row_bytes() * image_.height; }
  // With a zero behind the last pixel, for products that read whole pairs.
  size_t bytes() const { return static_cast<size_t>(image_bytes() * batch_) + sizeof(uint16_t); }

  // A unit is a piece of a row: matrices are images of a single row.
  int64_t units() const { return batch_ * image_.height * image_.pieces; }
  int64_t grain() const;
  void Copy(const float* input, std::byte* copy, int64_t begin, int64_t end) const;

 private:
  PaddedRows image_;
  int64_t batch_, channels_, pitch_;
  RoundFunction* round_;
};

// float32 as products of bfloat16 read it: rounded, with zeros around the image.
// `input` is the operator's input that holds the values.
std::unique_ptr<Source> Bf16Source(int input, const ProductDescription& description,
                                   RoundFunction* round);

}  // namespace fuselite::kernels
