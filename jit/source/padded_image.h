// An image with its padding around it, so that windows need no care at the borders.
#pragma once

#include <cstdint>

#include "kernels/make_kernel.h"
#include "kernels/window.h"

namespace fuselite::jit {

// The windows over a copy of the image with its padding, `height` x `width`.
inline kernels::Window OverPadded(const kernels::Window& window, int64_t height, int64_t width) {
  kernels::Window padded = window;
  padded.y.input = static_cast<int32_t>(height);
  padded.x.input = static_cast<int32_t>(width);
  for (kernels::WindowAxis* axis : {&padded.y, &padded.x}) axis->before = axis->after = 0;
  return padded;
}

// The image that a convolution reads: the input itself where no window reaches into padding, else
// a dense copy with `fill` bytes around it, cut to what the windows reach.
class PaddedImage {
 public:
  // Pixels of the input are `pixel_bytes` long and `pitch_bytes` apart.
  PaddedImage(const kernels::Window& window, int64_t batch, int64_t pixel_bytes,
              int64_t pitch_bytes, int fill = 0);

  bool needed() const { return needed_; }
  // These describe the image that is read.
  int64_t pixel_bytes() const { return needed_ ? pixel_ : pitch_; }
  int64_t row_bytes() const { return pixel_bytes() * width_; }
  int64_t image_bytes() const { return row_bytes() * height_; }

  // These describe the copy.
  size_t bytes() const { return static_cast<size_t>(image_bytes() * batch_); }
  int64_t rows() const { return batch_ * height_; }
  int64_t grain() const { return kernels::GrainFor(row_bytes() / 8); }
  void CopyRows(const std::byte* input, std::byte* copy, int64_t begin, int64_t end) const;

 private:
  bool needed_;
  int64_t batch_, pixel_, pitch_;
  int fill_;
  int64_t height_, width_;  // of the image that is read
  int64_t input_height_, input_width_;
  int64_t top_, left_;
};

}  // namespace fuselite::jit
