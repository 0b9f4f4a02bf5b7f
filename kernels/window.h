// Sliding windows over images: the output size and padding of convolutions and pools.
#pragma once

#include <cstdint>

#include "kernels/fields.h"
#include "runtime/support/status.h"

namespace fuselite::kernels {

// Rows and columns of padding (zeros; the zero point where quantized) that surround an image before
// the window's own Padding applies: what a PAD folded into a convolution leaves. All zero: none.
struct ExtraPadding {
  int32_t top, left, bottom, right;
  friend bool operator==(const ExtraPadding&, const ExtraPadding&) = default;
};

// One spatial dimension. Output position `o` covers the input positions
//   o * stride - before + k * dilation,  0 <= k < filter;
// those outside of [0, input) are padding.
struct WindowAxis {
  int32_t input = 0;
  int32_t filter = 1, stride = 1, dilation = 1;
  int32_t output = 0;
  int32_t before = 0, after = 0;  // padding; `after` may exceed what the last window reaches

  int32_t start(int32_t o) const { return o * stride - before; }
  // The positions from the first window's first tap to the last window's last.
  int64_t reach() const {
    return int64_t{output - 1} * stride + int64_t{filter - 1} * dilation + 1;
  }
  // The taps [begin, end) that lie inside of the input when the window starts at `start`.
  int32_t first_tap(int32_t start) const {
    if (start >= 0) return 0;
    const int32_t taps = (-start + dilation - 1) / dilation;
    return taps < filter ? taps : filter;
  }
  int32_t last_tap(int32_t start) const {
    if (start >= input) return 0;
    const int32_t taps = (input - start + dilation - 1) / dilation;
    return taps < filter ? taps : filter;
  }
  // Output positions [begin, end) whose every tap lies inside; begin == end where there is none.
  int32_t interior_begin() const;
  int32_t interior_end() const;
};

struct Window {
  WindowAxis y, x;
  int32_t taps() const { return y.filter * x.filter; }
  // Whether no window touches padding.
  bool unpadded() const {
    return y.interior_begin() == 0 && y.interior_end() == y.output && x.interior_begin() == 0 &&
           x.interior_end() == x.output;
  }
};

// Whether the output's pixels are the input's, one by one: then rows of the image are no borders.
inline bool PixelsFollow(const Window& window) {
  const auto& [y, x] = window;
  return window.unpadded() && window.taps() == 1 && x.stride == 1 && y.stride == 1 &&
         x.output == x.input && y.output == y.input;
}

struct WindowRequest {
  int32_t input_h = 0, input_w = 0;
  int32_t filter_h = 1, filter_w = 1;
  int32_t stride_h = 1, stride_w = 1;
  int32_t dilation_h = 1, dilation_w = 1;
  Padding padding = Padding::kValid;
  ExtraPadding extra{};
  // VALID: an input that is too small has no outputs, one that is too narrow no rows either: pools
  // of LiteRT overlook the error that its convolutions return.
  bool none_in_too_small = false;
};

// Gives an operator's parameters the strides of a window, and its padding as that of VALID.
template <class P, class Params>
void SetWindow(Params& params, const Window& window) {
  P& own = params.template as<P>();
  const auto& [y, x] = window;
  own.padding = Padding::kValid;
  own.stride_h = y.stride;
  own.stride_w = x.stride;
  own.extra_padding = {.top = y.before, .left = x.before, .bottom = y.after, .right = x.after};
}

// Sizes and padding as TFLite computes them: SAME gives ceil(input / stride) outputs and splits the
// padding with the odd one after; VALID gives those windows that fit, none where the input is too
// small by less than twice the stride. With extra padding, both apply to the padded size. Fails on
// a non-positive filter, stride or dilation, on a negative size, on an input that is smaller still
// (VALID, without none_in_too_small), and where a position would leave 31 bits.
Result<Window> ResolveWindow(const WindowRequest& request);

}  // namespace fuselite::kernels
