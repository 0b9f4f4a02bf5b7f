// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: images NHWC, padding left out of every window.
#pragma once

#include <algorithm>

#include "kernels/operator.h"
#include "kernels/window.h"

namespace fuselite::kernels {

struct PoolParams {
  Padding padding;
  int32_t stride_w, stride_h;
  int32_t filter_width, filter_height;
  Activation activation;
  // The file does not have it: it is set by rewrites that fold a PAD into MAX_POOL_2D. Every window
  // keeps a tap.
  ExtraPadding extra_padding{};
};

enum class PoolKind { kAverage, kMax, kL2 };

struct PoolShape {
  Window window;
  int32_t batch = 0, channels = 0;
  int64_t pixels_out() const { return int64_t{batch} * window.y.output * window.x.output; }
};

PoolKind PoolKindOf(const OperatorDef& op);
Result<PoolShape> ResolvePool(const OpDescription& op);
// With windows over whole rows along one line of all rows, for who takes taps in any number of
// rows: to begin the loops of a row of one output takes longer than they do.
Result<PoolShape> ResolvePoolAlongLines(const OpDescription& op);

// The clamp of the fused activation. That of integers is within the type's range, whose numbers
// floats hold; refuses one that leaves nothing.
struct PoolRange {
  float low, high;
};
Result<PoolRange> PoolRangeOf(const OpDescription& op);

// The sum of so many bytes and half of their count is below 2^24, that of so many int16 below 2^31.
constexpr int32_t kMostSummedTaps = 65535;
// Refuses means of integers of more taps.
Status CheckSummedTaps(const OpDescription& op, const PoolShape& shape);

// The taps of one output pixel: `rows` x `columns` of the input, never empty, from `first` on.
struct PoolTaps {
  int64_t first;  // pixel of the input
  int32_t rows, columns;
  int32_t count() const { return rows * columns; }
};
// f(pixel, count, taps) for the output pixels [begin, end), in runs of `count` that lie in one row
// and have as many taps each, a stride apart: those of a row that no padding cuts are one run.
// Divides once: for each pixel that would take longer than the maxima of a small window.
template <class F>
void ForPixelRuns(const PoolShape& shape, int64_t begin, int64_t end, F f) {
  const auto& [y, x] = shape.window;
  const int32_t inner_begin = x.interior_begin(), inner_end = x.interior_end();
  int64_t line = begin / x.output;
  auto column = static_cast<int32_t>(begin % x.output);
  for (int64_t pixel = begin; pixel < end; ++line, column = 0) {
    const int64_t image = line / y.output;
    const int32_t start_y = y.start(static_cast<int32_t>(line % y.output));
    const int32_t top = std::max(start_y, 0);
    const int32_t rows = std::min(start_y + y.filter, y.input) - top;
    const int64_t row = (image * y.input + top) * x.input;
    while (column < x.output && pixel < end) {
      const int32_t start_x = x.start(column), left = std::max(start_x, 0);
      const bool inner = column >= inner_begin && column < inner_end;
      const int64_t count = inner ? std::min<int64_t>(inner_end - column, end - pixel) : 1;
      f(pixel, count,
        PoolTaps{.first = row + left,
                 .rows = rows,
                 .columns = std::min(start_x + x.filter, x.input) - left});
      column += static_cast<int32_t>(count);
      pixel += count;
    }
  }
}
// f(pixel, taps) for each of them.
template <class F>
void ForPixels(const PoolShape& shape, int64_t begin, int64_t end, F f) {
  ForPixelRuns(shape, begin, end, [&](int64_t pixel, int64_t count, PoolTaps taps) {
    for (int64_t i = 0; i < count; ++i, taps.first += shape.window.x.stride) f(pixel + i, taps);
  });
}

// A unit is an output pixel, or a row of them. float32: sums in row-major order of the window, or
// where windows overlap of its columns first, divided by the number of taps, then the clamp of the
// fused activation, then the tail. Average and
// maximum of int8, uint8 and int16: input and output have the same scale; the mean is rounded half
// away from zero (int8, int16) or up (uint8).
Result<std::unique_ptr<Kernel>> BuildPoolReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildPoolHighway(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildIntegerPoolHighway(const OpDescription&, const BuildContext&);
// Windows that overlap so much that joining the rows of a line of them first takes less.
Result<std::unique_ptr<Kernel>> BuildPoolColumns(const OpDescription&, const BuildContext&);
// Dense images of few channels, no tail.
Result<std::unique_ptr<Kernel>> BuildPoolRows(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
