// What the vectorized micro-kernels share: the left side as their register tiles read it, and the
// way from tile to tile.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "kernels/gemm/register_tile.h"
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
  // The distance from a tile of `rows` rows to the one below.
  int64_t TileStep(int rows) const { return runs_.Offset(rows, row_step_); }
  // How many rows stay in L1 together while their values are read side by side: of rows that are a
  // multiple of 4 KiB apart, as many as a set of the cache has ways.
  int rows_together() const {
    constexpr int kWays = 8, kWayBytes = 4096;
    return row_step_ % kWayBytes == 0 && row_step_ != 0 ? kWays : kMostRows;
  }
  // What a row reads that the one before it does not.
  int64_t fresh_bytes() const { return fresh_bytes_; }

 private:
  int64_t row_step_;
  RowRuns runs_;
  int64_t fresh_bytes_;
  std::vector<DepthPiece> pieces_;
  std::array<int64_t, kMostRows> rows_;
};

// How a run goes through tiles of one size, whose vectors are those of register tiles side by side
// (NextTileVectors).
template <class Function>
struct TileSteps {
  struct Part {
    Function* function = nullptr;
    int vectors = 0;
    int64_t first = 0, columns = 0;  // of the panel's; the last part's vectors may have fewer
  };

  int rows = 0, parts = 0;
  int64_t width = 0, columns = 0;        // of the panel, and those of its channels that are stored
  int64_t left = 0, panel = 0, out = 0;  // bytes to the next tile
  int64_t row = 0, channel = 0;          // and what it is further on
  std::array<Part, kMostTileVectors> part{};

  TileSteps() = default;
  // `out_row_bytes` lie between the rows of a tile, `value_bytes` between its channels.
  TileSteps(const MicroKernel& kernel, const LeftRows& left_rows, const Tile& tile, TileOrder order,
            int64_t out_row_bytes, int64_t value_bytes, Function* (*function)(int, int))
      : rows(tile.rows),
        width(int64_t{tile.vectors} * kernel.lanes()),
        columns(width - kernel.lanes() + tile.last_lanes) {
    const int lanes = kernel.lanes();
    for (int first = 0; first < tile.vectors; first += part[parts++].vectors) {
      const int vectors = NextTileVectors(rows, tile.vectors - first);
      const int64_t at = int64_t{first} * lanes;
      part[parts] = {.function = function(rows, vectors),
                     .vectors = vectors,
                     .first = at,
                     .columns = std::min(int64_t{vectors} * lanes, columns - at)};
    }
    if (order == TileOrder::kDown) {
      left = left_rows.TileStep(rows);
      row = rows;
      out = rows * out_row_bytes;
    } else {
      panel = static_cast<int64_t>(kernel.panel_bytes(tile.vectors));
      channel = width;
      out = width * value_bytes;
    }
  }
  std::span<const Part> all_parts() const { return std::span(part).first(parts); }
};

// What a tile takes on a core with two loads and two arithmetic instructions a cycle, without what
// is done for all its terms together: `steps` of the depth, of each of which the arithmetic of a
// vector takes `arithmetic` instructions and continues the one before after `latency` cycles.
// What comes on top, a part of each load, lets larger tiles win.
struct TileTimes {
  int64_t steps, pieces;
  double arithmetic, latency;
  double row;  // what is done with a row of sums afterwards
};
inline double CyclesOfTile(const TileTimes& times, int rows, int vectors) {
  constexpr double kPieceCycles = 6, kStartCycles = 20;
  double cycles = kStartCycles + rows * times.row;
  for (int first = 0; first < vectors;) {
    const int together = NextTileVectors(rows, vectors - first);
    const double step = std::max({rows * together / 2.0 * times.arithmetic, (rows + together) / 2.0,
                                  times.latency}) +
                        0.25 * together + 0.1 * rows;
    cycles += static_cast<double>(times.steps) * step +
              static_cast<double>(times.pieces) * kPieceCycles + 2.0 * rows * together;
    first += together;
  }
  return cycles;
}

}  // namespace fuselite::kernels
