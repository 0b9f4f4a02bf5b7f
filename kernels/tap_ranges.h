// Runs of a window's positions along an axis with the same taps inside of the input: convolutions
// leave out the others, which meet padding alone.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/window.h"

namespace fuselite::kernels {

// Outputs [begin, end), which have the taps [first_tap, first_tap + taps) inside.
struct TapRange {
  int32_t begin = 0, end = 0, first_tap = 0, taps = 0;
  int32_t outputs() const { return end - begin; }
  // Where the first tap of the first output lies in the padded input.
  int32_t start(const WindowAxis& axis) const {
    return begin * axis.stride + first_tap * axis.dilation;
  }
};

// All outputs with all taps.
std::vector<TapRange> WholeRange(const WindowAxis& axis);

// In order. Empty where a window has no tap inside, and where windows reach beyond 31 bits.
std::vector<TapRange> RangesByTaps(const WindowAxis& axis);

// The windows of a range over the padded input. (Over the input itself, a single tap for each
// output would read no dense rows.)
WindowAxis OverPadded(const WindowAxis& axis, const TapRange& range);

}  // namespace fuselite::kernels
