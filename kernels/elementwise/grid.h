// How elementwise work is split: the output as rows of channels, in units that stay in L1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/tensor.h"

namespace fuselite::kernels {

// Units are whole rows, about kUnitElements together, or parts of a row that is longer.
struct ElementwiseGrid {
  static constexpr int64_t kUnitElements = 4096;  // 16 KiB of floats

  struct Unit {
    int64_t row, rows, channel, channels;
  };

  // Units of several rows have a multiple of `row_multiple` rows.
  explicit ElementwiseGrid(const Shape& shape, int64_t row_multiple = 1)
      : channels(shape.rank() ? shape.dim(-1) : 1),
        rows(channels ? shape.elements() / channels : 0),
        rows_per_unit(std::max<int64_t>(1, kUnitElements / std::max<int64_t>(1, channels))),
        pieces((channels + kUnitElements - 1) / kUnitElements) {
    if (rows_per_unit > row_multiple) rows_per_unit -= rows_per_unit % row_multiple;
  }

  int64_t units() const { return (rows + rows_per_unit - 1) / rows_per_unit * pieces; }
  int64_t unit_elements() const { return rows_per_unit * std::min(channels, kUnitElements); }
  Unit At(int64_t unit) const {
    const int64_t row = unit / pieces * rows_per_unit;
    const int64_t channel = unit % pieces * kUnitElements;
    return {row, std::min(rows_per_unit, rows - row), channel,
            std::min(kUnitElements, channels - channel)};
  }

  int64_t channels, rows;
  int64_t rows_per_unit, pieces;
};

}  // namespace fuselite::kernels
