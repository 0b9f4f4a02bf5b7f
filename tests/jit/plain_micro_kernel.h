// A micro-kernel in plain loops, whose tiles, panels and blocks have any limits.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/product/micro_kernel.h"
#include "kernels/product/product.h"
#include "kernels/product/source.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {

using kernels::PanelChannels;
using kernels::ProductProblem;
using kernels::RowScale;
using kernels::Tile;
using kernels::TileCalls;
using kernels::TileOrder;
using kernels::TileRun;

struct Limits {
  int lanes = 4, max_vectors = 2, max_rows = 3;
  int64_t block_bytes = 1024;
  double tile_start = 10;  // cycles: the more, the larger tiles are chosen
  bool shares_panels = false;

  static Limits Any(Random& random) {
    Limits limits;
    limits.lanes = random.Pick({1, 2, 3, 4, 8, 16});
    limits.max_vectors = static_cast<int>(random.Int(1, 8));
    limits.max_rows = static_cast<int>(random.Int(1, 20));
    limits.block_bytes = int64_t{1} << random.Int(2, 16);
    limits.tile_start = random.Float(0, 1000);
    limits.shares_panels = random.Chance(0.5);
    return limits;
  }
};

// What a plain micro-kernel multiplies and stores: int32 sums, or floats. Sums are exact in doubles
// where values are integers.
struct PlainFormat {
  std::string types;
  int64_t left_bytes = 4;
  // These read memory: a value of the left side, the i-th weight, the n-th bias; zero points taken
  // off.
  std::function<double(const std::byte* at)> left;
  std::function<double(const void* weights, int64_t i)> weight;
  std::function<double(const void* biases, int64_t n)> bias;
  // The weights' zero point, which sums learn of by what rows tell (MicroKernel::RowValues).
  double weights_zero_point = 0;
  // Bytes between the scales that the source tells of rows; 0: an image's scale is that of its
  // rows.
  int64_t row_scale_bytes = 0;
  bool row_zero_points = false;  // which are taken off values, too
  // Stores a sum of output channel `channel`; `scale` is its row's, of a source that has scales.
  std::function<void(double sum, const RowScale* scale, int64_t channel, std::byte* to)> store;
};

class PlainMicroKernel final : public kernels::MicroKernel {
 public:
  PlainMicroKernel(PlainFormat format, const Limits& limits, kernels::DepthRuns depth,
                   const ProductProblem& problem)
      : format_(std::move(format)),
        limits_(limits),
        depth_(std::move(depth)),
        left_step_(problem.left.row),
        left_runs_(problem.left_runs),
        out_step_(problem.out.row * problem.out_row_bytes),
        scratch_(problem.rest.waits()) {}

  std::string types() const override { return format_.types; }
  std::string target() const override { return "plain"; }
  int lanes() const override { return limits_.lanes; }
  int max_rows(int vectors) const override {
    return vectors <= limits_.max_vectors ? limits_.max_rows : 0;
  }
  double TileCycles(int rows, int vectors) const override {
    return limits_.tile_start + static_cast<double>(depth_.depth()) * rows * vectors;
  }
  int64_t row_bytes() const override { return depth_.depth() * format_.left_bytes; }
  int64_t small_block_bytes() const override { return limits_.block_bytes; }
  size_t panel_bytes(int vectors) const override {
    return sizeof(double) * width(vectors) * (depth_.depth() + 1);
  }
  // The bias, then the weights of each term.
  void PackPanel(const kernels::RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override {
    auto* packed = reinterpret_cast<double*>(to);
    for (int64_t k = -1; k < depth_.depth(); ++k) {
      for (int64_t i = 0; i < width(channels.vectors); ++i, ++packed) {
        const int64_t n = channels.first + i;
        *packed = 0;
        if (n >= channels.last) continue;
        if (k >= 0) *packed = format_.weight(right.values, k * right.k_step + n * right.n_step);
        if (k < 0 && right.bias != nullptr) *packed = format_.bias(right.bias, n);
      }
    }
  }
  std::string layout() const override { return internal::Join("plain k", depth_.depth()); }
  const kernels::MicroKernel* many_rows() const override {
    return limits_.shares_panels ? this : nullptr;
  }
  bool needs_row_values() const override { return format_.weights_zero_point != 0; }
  void RowValues(const std::byte* left, int64_t step, int64_t count,
                 int32_t* values) const override {
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      ForEachValue(left + i * step, [&](double value) { sum += value; });
      values[i] = static_cast<int32_t>(-format_.weights_zero_point * sum);
    }
  }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles,
                                                  const TileCalls& calls,
                                                  const std::string&) const override {
    EXPECT_LE(tiles.size(), 4U);
    for (const Tile& tile : tiles) {
      EXPECT_LE(tile.vectors, limits_.max_vectors);
      EXPECT_LE(tile.rows, limits_.max_rows);
      EXPECT_LE(tile.last_lanes, limits_.lanes);
    }
    auto emitted = std::make_shared<PlainMicroKernel>(*this);
    emitted->tiles_.assign(tiles.begin(), tiles.end());
    emitted->order_ = calls.order;
    // Sums that wait in scratch memory for their tail have rows of the widest panel.
    if (scratch_) emitted->out_step_ = width(tiles.front().vectors) * int64_t{sizeof(int32_t)};
    return std::shared_ptr<const MicroKernel>(std::move(emitted));
  }
  void Run(const TileRun& run) const override {
    ASSERT_LT(run.tile, tiles_.size());
    const Tile& tile = tiles_[run.tile];
    if (order_ == TileOrder::kDown) return RunRows(tile, run.tiles * tile.rows, run);
    TileRun one = run;
    for (int64_t i = 0; i < run.tiles; ++i) {
      RunRows(tile, tile.rows, one);
      one.panel += panel_bytes(tile.vectors);
      one.out += width(tile.vectors) * 4;
      one.channel += width(tile.vectors);
    }
  }

 private:
  void RunRows(const Tile& tile, int64_t rows, const TileRun& run) const {
    const int64_t channels = (tile.vectors - 1) * limits_.lanes + tile.last_lanes;
    for (int64_t row = 0; row < rows; ++row) {
      const std::byte* left = run.left + left_runs_.Offset(row, left_step_);
      double correction = 0;
      const RowScale* scale = nullptr;
      if (needs_row_values()) {
        correction = reinterpret_cast<const int32_t*>(run.row_values)[row];
      } else if (run.row_values != nullptr) {
        scale = reinterpret_cast<const RowScale*>(run.row_values + row * format_.row_scale_bytes);
      }
      for (int64_t n = 0; n < channels; ++n) {
        const auto* weights = reinterpret_cast<const double*>(run.panel) + n;
        double sum = *weights + correction;
        ForEachValue(left, [&](double value) {
          if (format_.row_zero_points) value -= scale->zero_point;
          sum += value * *(weights += width(tile.vectors));
        });
        format_.store(sum, scale, run.channel + n, run.out + row * out_step_ + n * 4);
      }
    }
  }

  int64_t width(int vectors) const { return int64_t{vectors} * limits_.lanes; }

  // The values of a row in the order of the depth.
  template <class Function>
  void ForEachValue(const std::byte* left, Function function) const {
    for (int64_t outer = 0; outer < depth_.outer; ++outer) {
      for (const auto& [offset, length] : depth_.runs) {
        // Offsets are in bytes.
        const std::byte* run = left + outer * depth_.outer_step + offset;
        for (int64_t k = 0; k < length; ++k) function(format_.left(run + k * format_.left_bytes));
      }
    }
  }

  PlainFormat format_;
  Limits limits_;
  kernels::DepthRuns depth_;
  int64_t left_step_;
  kernels::RowRuns left_runs_;
  int64_t out_step_;
  bool scratch_;
  std::vector<Tile> tiles_;
  TileOrder order_ = TileOrder::kDown;
};

}  // namespace fuselite::jit::testing
