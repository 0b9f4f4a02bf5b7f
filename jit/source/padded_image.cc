#include "jit/source/padded_image.h"

#include <algorithm>
#include <cstring>

namespace fuselite::jit {

PaddedImage::PaddedImage(const kernels::Window& window, int64_t batch, int64_t pixel_bytes,
                         int64_t pitch_bytes, int fill)
    : needed_(!window.unpadded()),
      batch_(batch),
      pixel_(pixel_bytes),
      pitch_(pitch_bytes),
      fill_(fill),
      height_(needed_ ? window.y.reach() : window.y.input),
      width_(needed_ ? window.x.reach() : window.x.input),
      input_height_(window.y.input),
      input_width_(window.x.input),
      top_(window.y.before),
      left_(window.x.before) {}

void PaddedImage::CopyRows(const std::byte* input, std::byte* copy, int64_t begin,
                           int64_t end) const {
  const int64_t before = std::min(left_, width_);
  const int64_t inside = std::max<int64_t>(0, std::min(input_width_, width_ - before));
  const int64_t after = width_ - before - inside;
  for (int64_t row = begin; row < end; ++row) {
    std::byte* to = copy + row * row_bytes();
    const int64_t y = row % height_ - top_;
    if (y < 0 || y >= input_height_) {
      std::memset(to, fill_, row_bytes());
      continue;
    }
    const std::byte* from = input + ((row / height_) * input_height_ + y) * input_width_ * pitch_;
    std::memset(to, fill_, before * pixel_);
    to += before * pixel_;
    if (pitch_ == pixel_) {
      std::memcpy(to, from, inside * pixel_);
    } else {
      for (int64_t x = 0; x < inside; ++x) std::memcpy(to + x * pixel_, from + x * pitch_, pixel_);
    }
    std::memset(to + inside * pixel_, fill_, after * pixel_);
  }
}

}  // namespace fuselite::jit
