#include "kernels/tap_ranges.h"

#include <algorithm>

#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// The outputs at which a tap begins or ends to lie inside, with the axis' ends, in order.
std::vector<int32_t> Borders(const WindowAxis& axis) {
  std::vector<int32_t> borders = {0, axis.output};
  for (int64_t k = 0; k < axis.filter; ++k) {
    const int64_t from = axis.before - k * axis.dilation;
    for (const int64_t at : {from, from + axis.input}) {
      const int64_t output = at <= 0 ? 0 : CeilDiv(at, int64_t{axis.stride});
      borders.push_back(static_cast<int32_t>(std::min<int64_t>(output, axis.output)));
    }
  }
  std::ranges::sort(borders);
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace

std::vector<TapRange> WholeRange(const WindowAxis& axis) {
  return {{0, axis.output, 0, axis.filter}};
}

std::vector<TapRange> RangesByTaps(const WindowAxis& axis) {
  if (axis.reach() > INT32_MAX) return {};
  const std::vector<int32_t> borders = Borders(axis);
  std::vector<TapRange> ranges;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const int32_t start = axis.start(borders[i]), first = axis.first_tap(start);
    const int32_t taps = axis.last_tap(start) - first;
    if (taps <= 0) return {};
    ranges.push_back({borders[i], borders[i + 1], first, taps});
  }
  return ranges;
}

WindowAxis OverPadded(const WindowAxis& axis, const TapRange& range) {
  return {.input = static_cast<int32_t>(axis.reach()),
          .filter = range.taps,
          .stride = axis.stride,
          .dilation = axis.dilation,
          .output = range.outputs()};
}

}  // namespace fuselite::kernels
