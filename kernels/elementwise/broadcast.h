// Broadcasting: shapes aligned at their innermost dimension, where a dimension of 1 repeats.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// The shape to which both broadcast, or why there is none.
Result<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// An elementwise loop over inputs that broadcast to the output's shape: neighbouring dimensions
// merged as far as every operand's memory allows, then cut into units of at most kPiece elements.
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

  // The output comes last. Precondition: the inputs broadcast to it. `keep_rows`: rows stay the
  // output's innermost dimension, so that Piece::row and column are those of a TailTile.
  BroadcastPlan(std::initializer_list<const TensorInfo*> operands, bool keep_rows);

  int64_t units() const { return rows_ * pieces_; }
  int64_t unit_elements() const { return row_ < kPiece ? row_ : kPiece; }
  // 0 or 1.
  int stride(int operand) const { return static_cast<int>(inner_[operand]); }

  // f(piece) for units [begin, end).
  template <class F>
  void ForEach(int64_t begin, int64_t end, F f) const {
    if (begin >= end) return;
    Cursor cursor(*this, begin / pieces_);
    for (int64_t unit = begin, piece = begin % pieces_; unit < end; ++unit) {
      Piece part{cursor.offsets, unit / pieces_, piece * kPiece, 0};
      part.count = row_ - part.column < kPiece ? row_ - part.column : kPiece;
      for (int k = 0; k < operands_; ++k) part.offsets[k] += part.column * inner_[k];
      f(part);
      if (++piece == pieces_) {
        piece = 0;
        cursor.Next(*this);
      }
    }
  }

 private:
  struct Dim {
    int64_t size;
    Offsets strides;
  };
  // The index of a row, and where its operands begin.
  struct Cursor {
    std::array<int64_t, Shape::kMaxRank> index{};
    Offsets offsets{};
    Cursor(const BroadcastPlan& plan, int64_t row);
    void Next(const BroadcastPlan& plan);
  };

  void Merge();

  int operands_ = 0;
  int rank_ = 0;                             // of the outer dimensions
  std::array<Dim, Shape::kMaxRank> dims_{};  // outermost first
  Offsets inner_{};
  int64_t row_ = 1, rows_ = 1, pieces_ = 1;
};

}  // namespace fuselite::kernels
