#include "kernels/conv2d/parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/tap_ranges.h"

namespace fuselite::kernels {
namespace {

// Multiply-adds of a core in a cycle, and what loading a packed weight takes of it: bytes by dot
// products, from L3. Other types take more for both.
constexpr double kMultiplyAdds = 64, kCyclesOfWeight = 0.25;
// More ranges of an axis would each save little, smaller ones fill no tiles.
constexpr size_t kMostRanges = 3;
constexpr int32_t kFewestOutputs = 4;
constexpr double kWorthwhile = 0.9;

using Ranges = std::vector<TapRange>;

TapRange Joined(const TapRange& a, const TapRange& b) {
  const int32_t first = std::min(a.first_tap, b.first_tap);
  const int32_t last = std::max(a.first_tap + a.taps, b.first_tap + b.taps);
  return {std::min(a.begin, b.begin), std::max(a.end, b.end), first, last - first};
}

// Joins small ranges to the neighbour with which they meet fewer taps.
Ranges WithoutSmall(Ranges ranges) {
  const auto small = [&] {
    return std::ranges::find_if(ranges,
                                [](const TapRange& r) { return r.outputs() < kFewestOutputs; });
  };
  for (auto at = small(); at != ranges.end() && ranges.size() > 1; at = small()) {
    const bool first = at == ranges.begin(), last = at + 1 == ranges.end();
    const auto with = [&](auto neighbour) {
      const TapRange joined = Joined(*at, *neighbour);
      return joined.taps * joined.outputs() - neighbour->taps * neighbour->outputs();
    };
    const auto neighbour = first || (!last && with(at + 1) < with(at - 1)) ? at + 1 : at - 1;
    *neighbour = Joined(*at, *neighbour);
    ranges.erase(at);
  }
  return ranges;
}

// By the taps that lie inside; the whole where that makes too many, and where a window has none.
Ranges ByTaps(const WindowAxis& axis) {
  if (axis.dilation == 1) return WholeRange(axis);
  const Ranges ranges = WithoutSmall(RangesByTaps(axis));
  return ranges.empty() || ranges.size() > kMostRanges ? WholeRange(axis) : ranges;
}

// The cycles that the parts take for each pair of channels.
double CyclesOf(const Ranges& y, const Ranges& x, int64_t images) {
  double multiply_adds = 0, weights = 0;
  for (const TapRange& of_y : y) {
    for (const TapRange& of_x : x) {
      const double taps = of_y.taps * of_x.taps;
      weights += taps;
      multiply_adds += taps * of_y.outputs() * of_x.outputs() * static_cast<double>(images);
    }
  }
  return multiply_adds / kMultiplyAdds + weights * kCyclesOfWeight;
}

ProductPart MakePart(const Window& window, const TapRange& y, const TapRange& x,
                     int64_t channels_in) {
  ProductPart part;
  part.window = {.y = OverPadded(window.y, y), .x = OverPadded(window.x, x)};
  part.first_y = y.start(window.y);
  part.first_x = x.start(window.x);
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
  const std::array<Ranges, 2> of_y = {WholeRange(window.y), ByTaps(window.y)};
  const std::array<Ranges, 2> of_x = {WholeRange(window.x), ByTaps(window.x)};
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
  for (const TapRange& range_y : of_y[y]) {
    for (const TapRange& range_x : of_x[x]) {
      parts.push_back(MakePart(window, range_y, range_x, channels_in));
    }
  }
  return parts;
}

}  // namespace fuselite::kernels
