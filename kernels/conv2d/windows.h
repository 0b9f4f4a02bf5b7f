// The windows of a convolution as rows of a matrix.
#pragma once

#include <algorithm>

#include "kernels/conv2d/conv2d.h"

namespace fuselite::kernels {

// Copies the windows of the output pixels [row, row + rows) to `to`, one behind the other, `pitch`
// values apart (at least shape.depth(); what is between is zeroed). `at` is the input's element for
// channel 0 of the group in the first pixel, `input_pitch` lies between pixels. copy(at, n, to)
// copies `n` values from the input's element `at`; padding is To{}.
template <class To, class Copy>
void CopyWindows(const Conv2DShape& shape, int64_t at, int64_t input_pitch, int64_t row,
                 int64_t rows, int64_t pitch, To* to, Copy copy) {
  const auto& [y, x] = shape.window;
  const int64_t channels = shape.group_in, row_values = x.filter * channels;
  // Taps side by side in memory are copied at once.
  const bool adjacent = x.dilation == 1 && input_pitch == channels;
  for (int64_t r = row; r < row + rows; ++r, to += pitch) {
    const int32_t start_y = y.start(static_cast<int32_t>(r / x.output % y.output));
    const int32_t start_x = x.start(static_cast<int32_t>(r % x.output));
    const int64_t image = r / x.output / y.output * y.input;
    const int32_t first = x.first_tap(start_x), last = x.last_tap(start_x);
    To* tap_row = to;
    for (int32_t ky = 0; ky < y.filter; ++ky, tap_row += row_values) {
      const int32_t iy = start_y + ky * y.dilation;
      if (iy < 0 || iy >= y.input || first >= last) {
        std::fill_n(tap_row, row_values, To{});
        continue;
      }
      std::fill_n(tap_row, first * channels, To{});
      std::fill_n(tap_row + last * channels, (x.filter - last) * channels, To{});
      const int64_t from =
          at + ((image + iy) * x.input + start_x + first * x.dilation) * input_pitch;
      if (adjacent) {
        copy(from, (last - first) * channels, tap_row + first * channels);
        continue;
      }
      for (int32_t kx = first; kx < last; ++kx) {
        copy(from + int64_t{kx - first} * x.dilation * input_pitch, channels,
             tap_row + kx * channels);
      }
    }
    std::fill(tap_row, to + pitch, To{});
  }
}

}  // namespace fuselite::kernels
