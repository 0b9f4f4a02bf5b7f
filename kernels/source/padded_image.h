// An image with its padding around it.
#pragma once

#include <cstdint>

#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/source/padded_rows.h"

namespace fuselite::kernels {

// The image that a convolution reads: the input itself where no window reaches into padding, else
// a dense copy with `fill` bytes around it, cut to what the windows reach.
class PaddedImage {
 public:
  // Pixels of the input are `pixel_bytes` long and `pitch_bytes` apart. The bytes are the same on
  // every ISA.
  PaddedImage(const Window& window, int64_t batch, int64_t pixel_bytes, int64_t pitch_bytes,
              Isa isa, int fill = 0);

  bool needed() const { return needed_; }
  // These describe the image that is read.
  int64_t pixel_bytes() const { return needed_ ? image_.pixel : pitch_; }
  int64_t row_bytes() const { return pixel_bytes() * width(); }
  int64_t image_bytes() const { return row_bytes() * height(); }

  // These describe the copy.
  size_t bytes() const { return static_cast<size_t>(image_bytes() * batch_); }
  int64_t rows() const { return batch_ * height(); }
  // The pieces of a row: a unit is one of those of all rows.
  int64_t pieces() const { return image_.pieces; }
  int64_t grain() const { return GrainFor(image_.piece_bytes() / 8); }
  void Copy(const std::byte* input, std::byte* copy, int64_t begin, int64_t end) const;

 private:
  // Dense rows, without a call for each.
  void CopyShortRows(const std::byte* input, std::byte* copy, int64_t begin, int64_t end) const;

  int64_t height() const { return needed_ ? image_.height : image_.input_height; }
  int64_t width() const { return needed_ ? image_.width : image_.input_width; }

  bool needed_;
  int64_t batch_, pitch_;
  int fill_;
  CopyLoops loops_;
  PaddedRows image_;
};

}  // namespace fuselite::kernels
