// The terms of a transposed convolution's sums, for scalar code.
#pragma once

#include <algorithm>

#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::kernels {

struct TransposeConvTerms {
  TransposeConvShape shape;
  int64_t pitch;  // of the input's pixels
  int32_t x_offset, weights_offset;

  // Calls term(x, w) for each product of the sum at output (oy, ox), channel o, in order of iy, ix,
  // c: indexes of elements.
  template <class Term>
  void ForTerms(int64_t image, int32_t oy, int32_t ox, int32_t o, Term term) const {
    const auto& [y, x] = shape.window;
    const Covering rows(y, oy), columns(x, ox);
    for (int32_t iy = rows.begin; iy < rows.end; ++iy) {
      const int32_t ky = oy + y.before - iy * y.stride;
      for (int32_t ix = columns.begin; ix < columns.end; ++ix) {
        const int32_t kx = ox + x.before - ix * x.stride;
        const int64_t pixel = (image * y.output + iy) * x.output + ix;
        const int64_t tap = (int64_t{o} * y.filter + ky) * x.filter + kx;
        for (int32_t c = 0; c < shape.channels_in; ++c) {
          term(pixel * pitch + c, tap * shape.channels_in + c);
        }
      }
    }
  }

  // Calls sum(o, image, oy, ox) for each channel of output pixel `row`.
  template <class Sum>
  void ForChannels(int64_t row, Sum sum) const {
    const auto& [y, x] = shape.window;
    for (int32_t o = 0; o < shape.channels_out; ++o) {
      sum(o, row / x.input / y.input, static_cast<int32_t>(row / x.input % y.input),
          static_cast<int32_t>(row % x.input));
    }
  }

 private:
  // The input positions [begin, end) whose windows cover output position `o`.
  struct Covering {
    Covering(const WindowAxis& axis, int32_t o) {
      const int32_t at = o + axis.before;
      begin = at < axis.filter ? 0 : (at - axis.filter) / axis.stride + 1;
      end = std::min(axis.output, at / axis.stride + 1);
    }
    int32_t begin, end;
  };
};

}  // namespace fuselite::kernels
