// Where the rows of a matrix product lie: those of its left side, and those of its output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fuselite::kernels {

// Where the values of one left row lie, relative to the row's start: the runs in turn, all of them
// `outer` times, `outer_step` bytes apart. A 1x1 convolution has one run; a k x k one has one run
// of k * C values for each of its k image rows.
struct DepthRuns {
  struct Run {
    int64_t offset;  // bytes
    int64_t length;  // values, consecutive
    friend bool operator==(const Run&, const Run&) = default;
  };
  int64_t outer = 1, outer_step = 0;
  std::vector<Run> runs;

  // What a row reads that the one before it, `row_step` bytes back, does not: windows overlap.
  int64_t FreshBytes(int64_t row_step, int64_t value_bytes) const {
    const int64_t all = depth() * value_bytes;
    return row_step > 0 ? std::min(all, row_step * outer) : all;
  }

  // The terms of one sum.
  int64_t depth() const { return steps(1); }
  // The steps of a walk that takes `values` values at a time, the last of a run perhaps fewer.
  int64_t steps(int64_t values) const {
    int64_t sum = 0;
    for (const Run& run : runs) sum += (run.length + values - 1) / values;
    return sum * outer;
  }
};

// Rows come in lines, lines in images. Tiles never cross from one line to the next.
struct RowGrid {
  int64_t line_rows = 0, lines_per_image = 1, images = 1;

  int64_t lines() const { return lines_per_image * images; }
  int64_t image_rows() const { return line_rows * lines_per_image; }
  int64_t rows() const { return line_rows * lines(); }
};

// The distance from a row to the next one, from a line to the next one, and from an image to the
// next one, in whatever unit the user of the struct says.
struct RowSteps {
  int64_t row = 0, line = 0, image = 0;

  int64_t OfLine(const RowGrid& grid, int64_t index) const {
    if (index < grid.lines_per_image) return index * line;  // divisions take 5 ns
    return index / grid.lines_per_image * image + index % grid.lines_per_image * line;
  }
};

// Rows that are not all one step apart: `rows` of them are, and each such run begins `step` behind
// the one before. One line of a grid may so be several short lines of an image.
struct RowRuns {
  int64_t rows = 0, step = 0;  // 0 rows: a single run without end

  // Where row `row` of the line is, `row_step` being that within a run.
  int64_t Offset(int64_t row, int64_t row_step) const {
    if (rows == 0) return row * row_step;
    return row / rows * step + row % rows * row_step;
  }
  // How many rows from `row` on are one step apart, of `count`.
  int64_t Together(int64_t row, int64_t count) const {
    return rows == 0 ? count : std::min(count, rows - row % rows);
  }
};

// The steps of a grid whose rows follow each other, `row` apart.
inline RowSteps DenseSteps(const RowGrid& grid, int64_t row) {
  return {.row = row, .line = row * grid.line_rows, .image = row * grid.image_rows()};
}

}  // namespace fuselite::kernels
