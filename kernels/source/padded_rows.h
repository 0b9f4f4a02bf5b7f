// Rows of images copied with the padding around them, so that windows need no care at the borders.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/window.h"

namespace fuselite::kernels {

// Where the images' rows belong in dense copies, which are cut to what the windows reach.
struct PaddedRows {
  explicit PaddedRows(const Window& window)
      : height(window.y.reach()),
        width(window.x.reach()),
        input_height(window.y.input),
        input_width(window.x.input),
        top(window.y.before),
        left(window.x.before) {}

  int64_t height, width;  // of a copy, in pixels
  int64_t input_height, input_width;
  int64_t top, left;

  // The pixels of padding before a row's own, and those of its own that the windows reach.
  int64_t before() const { return std::min(left, width); }
  int64_t inside() const { return std::max<int64_t>(0, std::min(input_width, width - before())); }

  // Makes rows [begin, end) of the copies of all images. Pixels of the input are `input_pixel`
  // bytes apart, those of the copies `pixel`. `fill(to, pixels)` writes padding;
  // `copy(from, to, pixels)` pixels that follow each other in both: `dense` says whether they do.
  template <class Fill, class Copy>
  void Make(const std::byte* input, int64_t input_pixel, bool dense, std::byte* copies,
            int64_t pixel, int64_t begin, int64_t end, Fill fill, Copy copy) const {
    if (begin == end) return;
    const int64_t before = this->before(), inside = this->inside();
    const int64_t after = width - before - inside, together = dense ? inside : 1;
    int64_t image = begin / height, y = begin % height;
    for (int64_t row = begin; row < end; ++row, ++y) {
      if (y == height) {
        y = 0;
        ++image;
      }
      std::byte* to = copies + row * width * pixel;
      if (y < top || y - top >= input_height) {
        fill(to, width);
        continue;
      }
      const std::byte* from = input + (image * input_height + y - top) * input_width * input_pixel;
      if (before > 0) fill(to, before);
      to += before * pixel;
      for (int64_t x = 0; x < inside; x += together) {
        copy(from + x * input_pixel, to + x * pixel, together);
      }
      if (after > 0) fill(to + inside * pixel, after);
    }
  }
};

// The windows over a copy of the image with its padding, `height` x `width`.
inline Window OverPadded(const Window& window, int64_t height, int64_t width) {
  Window padded = window;
  padded.y.input = static_cast<int32_t>(height);
  padded.x.input = static_cast<int32_t>(width);
  for (WindowAxis* axis : {&padded.y, &padded.x}) axis->before = axis->after = 0;
  return padded;
}

}  // namespace fuselite::kernels
