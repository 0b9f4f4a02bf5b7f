#include "kernels/conv2d/parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// Multiply-adds of a core in a cycle, and what loading a packed weight takes of it: bytes by dot
// products, from L3. Other types take more for both.
constexpr double kMultiplyAdds = 64, kCyclesOfWeight = 0.25;
// More ranges of an axis would each save little, smaller ones fill no tiles.
constexpr size_t kMostRanges = 3;
constexpr int32_t kFewestOutputs = 4;
constexpr double kWorthwhile = 0.9;

// Outputs [begin, end) of an axis that meet the taps [first_tap, first_tap + taps).
struct Range {
  int32_t begin = 0, end = 0, first_tap = 0, taps = 0;
  int32_t outputs() const { return end - begin; }
};
using Ranges = std::vector<Range>;

// The whole axis as one range.
Ranges Whole(const WindowAxis& axis) { return {{0, axis.output, 0, axis.filter}}; }

Range Joined(const Range& a, const Range& b) {
  const int32_t first = std::min(a.first_tap, b.first_tap);
  const int32_t last = std::max(a.first_tap + a.taps, b.first_tap + b.taps);
  return {std::min(a.begin, b.begin), std::max(a.end, b.end), first, last - first};
}

// Joins small ranges to the neighbour with which they meet fewer taps.
Ranges WithoutSmall(Ranges ranges) {
  const auto small = [&] {
    return std::ranges::find_if(ranges,
                                [](const Range& r) { return r.outputs() < kFewestOutputs; });
  };
  for (auto at = small(); at != ranges.end() && ranges.size() > 1; at = small()) {
    const bool first = at == ranges.begin(), last = at + 1 == ranges.end();
    const auto with = [&](auto neighbour) {
      const Range joined = Joined(*at, *neighbour);
      return joined.taps * joined.outputs() - neighbour->taps * neighbour->outputs();
    };
    const auto neighbour = first || (!last && with(at + 1) < with(at - 1)) ? at + 1 : at - 1;
    *neighbour = Joined(*at, *neighbour);
    ranges.erase(at);
  }
  return ranges;
}

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

// By the taps that lie inside; the whole where that makes too many, and where a window has none.
Ranges ByTaps(const WindowAxis& axis) {
  if (axis.dilation == 1 || axis.reach() > INT32_MAX) return Whole(axis);
  const std::vector<int32_t> borders = Borders(axis);
  Ranges ranges;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const int32_t start = axis.start(borders[i]), first = axis.first_tap(start);
    const int32_t taps = axis.last_tap(start) - first;
    if (taps <= 0) return Whole(axis);
    ranges.push_back({borders[i], borders[i + 1], first, taps});
  }
  ranges = WithoutSmall(std::move(ranges));
  return ranges.size() > kMostRanges ? Whole(axis) : ranges;
}

// The cycles that the parts take for each pair of channels.
double CyclesOf(const Ranges& y, const Ranges& x, int64_t images) {
  double multiply_adds = 0, weights = 0;
  for (const Range& of_y : y) {
    for (const Range& of_x : x) {
      const double taps = of_y.taps * of_x.taps;
      weights += taps;
      multiply_adds += taps * of_y.outputs() * of_x.outputs() * static_cast<double>(images);
    }
  }
  return multiply_adds / kMultiplyAdds + weights * kCyclesOfWeight;
}

// Over the padded image: a part of one tap for each pixel reads no dense rows.
WindowAxis Part(const WindowAxis& axis, const Range& range) {
  return {.input = static_cast<int32_t>(axis.reach()),
          .filter = range.taps,
          .stride = axis.stride,
          .dilation = axis.dilation,
          .output = range.outputs()};
}

ProductPart MakePart(const Window& window, const Range& y, const Range& x, int64_t channels_in) {
  ProductPart part;
  part.window = {.y = Part(window.y, y), .x = Part(window.x, x)};
  part.first_y = y.begin * window.y.stride + y.first_tap * window.y.dilation;
  part.first_x = x.begin * window.x.stride + x.first_tap * window.x.dilation;
  part.out_y = y.begin;
  part.out_x = x.begin;
  for (int32_t ky = y.first_tap; ky < y.first_tap + y.taps; ++ky) {
    for (int32_t kx = x.first_tap; kx < x.first_tap + x.taps; ++kx) {
      part.taps.push_back((int64_t{ky} * window.x.filter + kx) * channels_in);
    }
  }
  return part;
}

}  // namespace

std::vector<ProductPart> PartsByTaps(const Window& window, int64_t images, int64_t channels_in) {
  // Asked of every convolution, several times while a model opens.
  if (window.y.dilation == 1 && window.x.dilation == 1) return {{.window = window}};
  const std::array<Ranges, 2> of_y = {Whole(window.y), ByTaps(window.y)};
  const std::array<Ranges, 2> of_x = {Whole(window.x), ByTaps(window.x)};
  double least = CyclesOf(of_y[0], of_x[0], images) * kWorthwhile;
  size_t y = 0, x = 0;
  for (const auto& [by_y, by_x] : {std::pair<size_t, size_t>{1, 0}, {0, 1}, {1, 1}}) {
    const double cycles = CyclesOf(of_y[by_y], of_x[by_x], images);
    if (cycles >= least) continue;
    least = cycles;
    y = by_y;
    x = by_x;
  }
  if (y == 0 && x == 0) return {{.window = window}};
  std::vector<ProductPart> parts;
  for (const Range& range_y : of_y[y]) {
    for (const Range& range_x : of_x[x]) {
      parts.push_back(MakePart(window, range_y, range_x, channels_in));
    }
  }
  return parts;
}

}  // namespace fuselite::kernels
