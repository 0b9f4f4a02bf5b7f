// What the vectorized micro-kernels share: the left side as their register tiles read it, and the
// way from tile to tile.
#pragma once

#include <array>
#include <vector>

#include "kernels/gemm/depth_pieces.h"
#include "kernels/product/product.h"

namespace fuselite::kernels {

class LeftRows {
 public:
  static constexpr int kMostRows = 16;  // of a tile

  // A term of a piece is `values` values; the last one of a piece may have fewer.
  LeftRows(const DepthRuns& depth, const ProductProblem& problem, int64_t values,
           int64_t value_bytes)
      : row_step_(problem.left.row),
        runs_(problem.left_runs),
        fresh_bytes_(depth.FreshBytes(problem.left.row, value_bytes)) {
    for (int64_t outer = 0; outer < depth.outer; ++outer) {
      for (const DepthRuns::Run& run : depth.runs) {
        pieces_.push_back({.offset = outer * depth.outer_step + run.offset,
                           .terms = (run.length + values - 1) / values});
      }
    }
    // A tile has whole runs of rows, so these are the same in each.
    for (int row = 0; row < kMostRows; ++row) rows_[row] = runs_.Offset(row, row_step_);
  }

  const std::vector<DepthPiece>& pieces() const { return pieces_; }
  const int64_t* rows() const { return rows_.data(); }
  // From a tile of `rows` rows to the one below.
  int64_t TileStep(int rows) const { return runs_.Offset(rows, row_step_); }
  // What a row reads that the one before it does not.
  int64_t fresh_bytes() const { return fresh_bytes_; }

 private:
  int64_t row_step_;
  RowRuns runs_;
  int64_t fresh_bytes_;
  std::vector<DepthPiece> pieces_;
  std::array<int64_t, kMostRows> rows_;
};

// How a run goes from a tile to the next one.
struct TileSteps {
  int rows = 0, vectors = 0;             // of the tile
  int64_t width = 0, columns = 0;        // of a panel, and those of its channels that are stored
  int64_t left = 0, panel = 0, out = 0;  // bytes
  int64_t row = 0, channel = 0;

  // `out_row_bytes` lie between the rows of a tile, `value_bytes` between its channels.
  TileSteps() = default;
  TileSteps(const MicroKernel& kernel, const LeftRows& left_rows, const Tile& tile, TileOrder order,
            int64_t out_row_bytes, int64_t value_bytes)
      : rows(tile.rows),
        vectors(tile.vectors),
        width(int64_t{tile.vectors} * kernel.lanes()),
        columns(width - kernel.lanes() + tile.last_lanes) {
    if (order == TileOrder::kDown) {
      left = left_rows.TileStep(rows);
      row = rows;
      out = rows * out_row_bytes;
    } else {
      panel = static_cast<int64_t>(kernel.panel_bytes(vectors));
      channel = width;
      out = width * value_bytes;
    }
  }
};

}  // namespace fuselite::kernels
