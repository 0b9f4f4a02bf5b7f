// The tail of kernels that compute a float row at a time: pools, normalizations, reductions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/operator.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {

// Where a kernel writes its rows, and what then becomes of them: with no tail they are the output;
// with one they lie in the output or, where its element is narrower, in scratch, until Finish().
class RowTail {
 public:
  RowTail(const OpDescription& op, ApplyTailFunction* apply)
      : tail_(op.tail),
        apply_(apply),
        type_(op.outputs[0].type),
        pitch_(op.outputs[0].pitch()),
        channels_(op.outputs[0].shape.rank() ? op.outputs[0].shape.dim(-1) : 1) {}

  // How many rows Finish() should get at once, which are still in L1: with one at a time, a maximum
  // pool of 64 x 64 rows of 24 floats and a sum takes 154 us on a Zen 4, with so many 50.
  int64_t rows_together() const {
    return std::max<int64_t>(1, kFloatsTogether / std::max<int64_t>(1, channels_));
  }
  // What the kernel needs for so many rows.
  size_t scratch_bytes(int64_t rows = 1) const { return in_place() ? 0 : rows * row_bytes(); }
  // Row `row` of those that begin with `first`.
  float* Row(const KernelArgs& args, int64_t row, int64_t first) const {
    if (in_place()) return static_cast<float*>(args.outputs[0]) + row * pitch_;
    return reinterpret_cast<float*>(args.scratch) + (row - first) * channels_;
  }
  float* Row(const KernelArgs& args, int64_t row) const { return Row(args, row, row); }
  // The distance from one row of Row() to the next, in floats.
  int64_t row_pitch() const { return in_place() ? pitch_ : channels_; }
  // Rows `row` to `row + rows` lie where Row(args, ., row) is.
  void Finish(const KernelArgs& args, int64_t row, int64_t rows = 1) const {
    if (tail_.empty()) return;
    apply_(tail_, args.inputs,
           {.source = Row(args, row),
            .source_pitch = row_pitch(),
            .source_type = DataType::kFloat32,
            .destination =
                static_cast<std::byte*>(args.outputs[0]) + row * pitch_ * (BitWidth(type_) / 8),
            .destination_pitch = pitch_,
            .destination_type = type_,
            .row = row,
            .rows = rows,
            .channel = 0,
            .channels = channels_});
  }

 private:
  static constexpr int64_t kFloatsTogether = 1024;

  bool in_place() const { return type_ == DataType::kFloat32; }
  size_t row_bytes() const { return channels_ * sizeof(float); }

  Tail tail_;
  ApplyTailFunction* apply_;
  DataType type_;
  int64_t pitch_, channels_;
};

}  // namespace fuselite::kernels
