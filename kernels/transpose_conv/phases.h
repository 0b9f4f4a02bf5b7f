// A transposed convolution as stride_h * stride_w ordinary ones: the output pixels whose position
// plus padding leaves the same remainder by the stride see the same taps, every stride-th of the
// filter, and neighbours among them see neighbouring input pixels.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::kernels {

class TransposeConvPhases {
 public:
  // The filter's part for one pair of remainders.
  struct Phase {
    int32_t taps_y, taps_x;
    int64_t offset;  // of its packed weights, in values
  };

  TransposeConvPhases() = default;
  // `packed_values(depth)`: of one packed matrix of `depth` terms.
  template <class PackedValues>
  Status Init(const TransposeConvShape& shape, PackedValues packed_values) {
    shape_ = shape;
    const auto& [y, x] = shape_.window;
    // Remainders beyond the filter have no taps; many of them would only cost memory here.
    if (int64_t{y.stride} * x.stride > 1024) return Unsupported("a stride beyond 32x32");
    for (int32_t ry = 0; ry < y.stride; ++ry) {
      for (int32_t rx = 0; rx < x.stride; ++rx) {
        phases_.push_back({TapsOf(y, ry), TapsOf(x, rx), values_});
        const int64_t depth = DepthOf(phases_.back());
        max_depth_ = std::max(max_depth_, depth);
        values_ += packed_values(depth);
      }
    }
    return Status();
  }

  const TransposeConvShape& shape() const { return shape_; }
  int64_t max_depth() const { return max_depth_; }
  int64_t values() const { return values_; }  // of all packed matrices
  int64_t DepthOf(const Phase& phase) const {
    return int64_t{phase.taps_y} * phase.taps_x * shape_.channels_in;
  }

  // The weights of one phase: channels_out rows of its depth, in order of the input pixels.
  // `weights` gives element i of the filters.
  template <class T, class Weights>
  std::vector<T> Dense(const Phase& phase, int32_t ry, int32_t rx, const Weights& weights) const {
    const auto& [y, x] = shape_.window;
    const int64_t channels = shape_.channels_in;
    std::vector<T> dense;
    dense.reserve(shape_.channels_out * DepthOf(phase));
    for (int64_t o = 0; o < shape_.channels_out; ++o) {
      // Later taps meet earlier pixels.
      for (int32_t j = phase.taps_y - 1; j >= 0; --j) {
        for (int32_t i = phase.taps_x - 1; i >= 0; --i) {
          const int64_t tap = (o * y.filter + ry + j * y.stride) * x.filter + rx + i * x.stride;
          for (int64_t c = 0; c < channels; ++c) dense.push_back(weights[tap * channels + c]);
        }
      }
    }
    return dense;
  }
  // Calls f(phase, ry, rx) for all.
  template <class F>
  void ForEach(F&& f) const {
    const int32_t width = shape_.window.x.stride;
    for (size_t i = 0; i < phases_.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      f(phases_[i], at / width, at % width);
    }
  }

  // The pixels first, first + stride_w, ... of an output row, `conv.window.x.output` of them, and
  // the ordinary convolution of image `image` (counted in input pixels) that they are the output
  // of.
  struct Part {
    const Phase* phase;
    Conv2DShape conv;
    int32_t first;
    int64_t image;
  };
  // Those of row `row` (of all images') whose columns leave the remainder `rx`.
  Part PartOf(int64_t row, int32_t rx) const {
    const auto& [y, x] = shape_.window;
    const int32_t at_y = static_cast<int32_t>(row % y.input) + y.before;
    Part part;
    part.phase = &phases_[at_y % y.stride * x.stride + rx];
    part.first = (rx - x.before % x.stride + x.stride) % x.stride;
    part.image = row / y.input * y.output * x.output;
    part.conv.batch = 1;
    part.conv.group_in = part.conv.channels_in = shape_.channels_in;
    part.conv.window.y = {.input = y.output,
                          .filter = part.phase->taps_y,
                          .output = 1,
                          .before = part.phase->taps_y - 1 - at_y / y.stride};
    part.conv.window.x = {
        .input = x.output,
        .filter = part.phase->taps_x,
        .output = part.first < x.input ? (x.input - part.first - 1) / x.stride + 1 : 0,
        .before = part.phase->taps_x - 1 - (part.first + x.before) / x.stride};
    return part;
  }

 private:
  // The taps of an axis that remainder `r` sees: r, r + stride, ...
  static int32_t TapsOf(const WindowAxis& axis, int32_t r) {
    return r < axis.filter ? (axis.filter - r + axis.stride - 1) / axis.stride : 0;
  }

  TransposeConvShape shape_;
  std::vector<Phase> phases_;  // by remainders (y, x)
  int64_t max_depth_ = 0, values_ = 0;
};

}  // namespace fuselite::kernels
