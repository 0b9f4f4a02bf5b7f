// Broadcasting: shapes aligned at their innermost dimension, where a dimension of 1 repeats.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// The shape to which both broadcast, or why there is none.
Result<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// An elementwise loop over inputs that broadcast to the output's shape: neighbouring dimensions
// merged as far as every operand's memory allows, then cut into units of at most kPiece elements:
// parts of one row, or rows of one dimension.
class BroadcastPlan {
 public:
  static constexpr int kMaxOperands = 4;
  static constexpr int64_t kPiece = 8192;
  using Offsets = std::array<int64_t, kMaxOperands>;

  // Part of a row: element i of operand k is at offsets[k] + i * stride(k), i < count. `row` counts
  // the merged rows; `column` is the part's place in its row.
  struct Piece {
    Offsets offsets;
    int64_t row, column, count;
  };
  // One part of each of `rows` rows that follow each other, row_stride(k) elements apart. One unit.
  struct Block {
    Offsets offsets;
    int64_t row, column, rows, count;
  };

  // The output comes last. Precondition: the inputs broadcast to it. `keep_rows`: rows stay the
  // output's innermost dimension, so that Piece::row and column are those of a TailTile.
  BroadcastPlan(std::initializer_list<const TensorInfo*> operands, bool keep_rows);

  int64_t units() const { return outer_ * blocks_ * pieces_; }
  // The most that a unit has.
  int64_t unit_elements() const { return block_rows_ * (row_ < kPiece ? row_ : kPiece); }
  // How many elements a row has.
  int64_t row_elements() const { return row_; }
  // 0 or 1.
  int stride(int operand) const { return static_cast<int>(inner_[operand]); }
  int64_t row_stride(int operand) const { return rows_.strides[operand]; }

  // f(block) for units [begin, end).
  template <class F>
  void ForEachBlock(int64_t begin, int64_t end, F f) const {
    if (begin >= end) return;
    const int64_t parts = blocks_ * pieces_;
    Cursor cursor(*this, begin / parts);
    for (int64_t unit = begin, part = begin % parts; unit < end; ++unit) {
      f(BlockOf(cursor.offsets, unit / parts, part / pieces_ * block_rows_,
                part % pieces_ * kPiece));
      if (++part == parts) {
        part = 0;
        cursor.Next(*this);
      }
    }
  }

  // As ForEachBlock(), with units of whole rows that follow each other as one block.
  template <class F>
  void ForEachLongBlock(int64_t begin, int64_t end, F f) const {
    if (pieces_ > 1) return ForEachBlock(begin, end, f);
    Cursor cursor(*this, begin < end ? begin / blocks_ : 0);
    while (begin < end) {
      const int64_t first = begin % blocks_, last = std::min(blocks_, first + end - begin);
      Block block = BlockOf(cursor.offsets, begin / blocks_, first * block_rows_, 0);
      block.rows = std::min(last * block_rows_, rows_.size) - first * block_rows_;
      f(block);
      begin += last - first;
      if (last == blocks_) cursor.Next(*this);
    }
  }

  // f(piece) for every row of units [begin, end).
  template <class F>
  void ForEach(int64_t begin, int64_t end, F f) const {
    ForEachBlock(begin, end, [&](const Block& block) {
      Piece piece{block.offsets, block.row, block.column, block.count};
      for (int64_t r = 0; r < block.rows; ++r, ++piece.row) {
        f(piece);
        for (int k = 0; k < operands_; ++k) piece.offsets[k] += rows_.strides[k];
      }
    });
  }

 private:
  struct Dim {
    int64_t size;
    Offsets strides;
  };
  // The index of an outer element, and where its operands begin.
  struct Cursor {
    std::array<int64_t, Shape::kMaxRank> index{};
    Offsets offsets{};
    Cursor(const BroadcastPlan& plan, int64_t outer);
    void Next(const BroadcastPlan& plan);
  };

  void Merge();
  void MergeOuter();
  // Rows from the `row`th of outer element `outer`, which begins at `offsets`.
  Block BlockOf(const Offsets& offsets, int64_t outer, int64_t row, int64_t column) const;

  int operands_ = 0;
  int rank_ = 0;                             // of the dimensions outside of the rows
  std::array<Dim, Shape::kMaxRank> dims_{};  // outermost first
  Dim rows_{1, {}};                          // the dimension of the rows
  Offsets inner_{};
  int64_t row_ = 1;                                  // elements
  int64_t outer_ = 1, blocks_ = 1, block_rows_ = 1;  // blocks per outer element, rows per block
  int64_t pieces_ = 1;
};

}  // namespace fuselite::kernels
