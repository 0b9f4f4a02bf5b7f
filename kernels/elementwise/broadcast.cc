#include "kernels/elementwise/broadcast.h"

#include <algorithm>

namespace fuselite::kernels {
namespace {

// Dimension `d` of an output of `rank` dimensions, as the smaller `shape` has it.
int32_t AlignedDim(const Shape& shape, int rank, int d) {
  const int own = d - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

}  // namespace

Result<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int d = 0; d < rank; ++d) {
    const int32_t x = AlignedDim(a, rank, d), y = AlignedDim(b, rank, d);
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("shapes ", a, " and ", b, " do not broadcast");
    }
    result.push_back(x == 1 ? y : x);
  }
  if (!Shape::FromDims(result.dims())) {
    return InvalidArgument("shapes ", a, " and ", b, " broadcast to too many elements");
  }
  return result;
}

BroadcastPlan::BroadcastPlan(std::initializer_list<const TensorInfo*> operands, bool keep_rows) {
  const Shape& out = operands.end()[-1]->shape;
  operands_ = static_cast<int>(operands.size());
  const int rank = std::max(out.rank(), 1);
  std::array<Dim, Shape::kMaxRank> all{};
  for (int d = 0; d < rank; ++d) all[d].size = AlignedDim(out, rank, d);
  int k = 0;
  for (const TensorInfo* operand : operands) {
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int32_t size = AlignedDim(operand->shape, rank, d);
      all[d].strides[k] = size == 1 ? 0 : stride;
      stride = d == rank - 1 ? operand->pitch() : stride * size;
    }
    ++k;
  }
  inner_ = all[rank - 1].strides;
  row_ = all[rank - 1].size;
  for (int d = 0; d < rank - 1; ++d) {
    if (all[d].size != 1) dims_[rank_++] = all[d];
  }
  if (!keep_rows) Merge();
  MergeOuter();
  if (rank_ > 0) rows_ = dims_[--rank_];
  for (int d = 0; d < rank_; ++d) outer_ *= dims_[d].size;
  if (row_ == 0) outer_ = 0;
  pieces_ = std::max<int64_t>(1, (row_ + kPiece - 1) / kPiece);
  block_rows_ =
      std::clamp<int64_t>(kPiece / std::max<int64_t>(row_, 1), 1, std::max<int64_t>(rows_.size, 1));
  blocks_ = (rows_.size + block_rows_ - 1) / block_rows_;
}

BroadcastPlan::Block BroadcastPlan::BlockOf(const Offsets& offsets, int64_t outer, int64_t row,
                                            int64_t column) const {
  Block block{offsets, outer * rows_.size + row, column, std::min(block_rows_, rows_.size - row),
              std::min(kPiece, row_ - column)};
  for (int k = 0; k < operands_; ++k) {
    block.offsets[k] += row * rows_.strides[k] + column * inner_[k];
  }
  return block;
}

// Takes outer dimensions into the row from the innermost on, as long as every operand steps from
// row to row as within one, or stands still throughout. A row of one element takes over the next
// dimension's strides.
void BroadcastPlan::Merge() {
  while (rank_ > 0) {
    const Dim& next = dims_[rank_ - 1];
    for (int k = 0; k < operands_; ++k) {
      if (row_ != 1 && next.strides[k] != inner_[k] * row_) return;
      if (row_ == 1 && next.strides[k] > 1) return;
    }
    if (row_ == 1) inner_ = next.strides;
    row_ *= next.size;
    --rank_;
  }
}

// Joins neighbouring outer dimensions where every operand steps from one end to the next beginning:
// rows then are as many as can be.
void BroadcastPlan::MergeOuter() {
  int merged = 0;
  for (int d = 0; d < rank_; ++d) {
    Dim* const outer = merged > 0 ? &dims_[merged - 1] : nullptr;
    bool joins = outer != nullptr;
    for (int k = 0; joins && k < operands_; ++k) {
      joins = outer->strides[k] == dims_[d].strides[k] * dims_[d].size;
    }
    if (joins) {
      *outer = {outer->size * dims_[d].size, dims_[d].strides};
    } else {
      dims_[merged++] = dims_[d];
    }
  }
  rank_ = merged;
}

BroadcastPlan::Cursor::Cursor(const BroadcastPlan& plan, int64_t outer) {
  for (int d = plan.rank_ - 1; d >= 0; --d) {
    index[d] = outer % plan.dims_[d].size;
    outer /= plan.dims_[d].size;
    for (int k = 0; k < plan.operands_; ++k) offsets[k] += index[d] * plan.dims_[d].strides[k];
  }
}

void BroadcastPlan::Cursor::Next(const BroadcastPlan& plan) {
  for (int d = plan.rank_ - 1; d >= 0; --d) {
    const Dim& dim = plan.dims_[d];
    const bool wraps = ++index[d] == dim.size;
    const int64_t steps = wraps ? 1 - dim.size : 1;
    for (int k = 0; k < plan.operands_; ++k) offsets[k] += steps * dim.strides[k];
    if (!wraps) return;
    index[d] = 0;
  }
}

}  // namespace fuselite::kernels
