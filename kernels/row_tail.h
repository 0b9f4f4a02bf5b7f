// The tail of kernels that compute a float row at a time: pools, normalizations, reductions.
#pragma once

#include <utility>

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

  // What the kernel needs; the row in scratch is at its start.
  size_t scratch_bytes() const {
    return type_ == DataType::kFloat32 ? 0 : channels_ * sizeof(float);
  }
  float* Row(const KernelArgs& args, int64_t row) const {
    if (type_ != DataType::kFloat32) return reinterpret_cast<float*>(args.scratch);
    return static_cast<float*>(args.outputs[0]) + row * pitch_;
  }
  void Finish(const KernelArgs& args, int64_t row) const {
    if (tail_.empty()) return;
    apply_(tail_, args.inputs,
           {.source = Row(args, row),
            .source_pitch = channels_,
            .source_type = DataType::kFloat32,
            .destination =
                static_cast<std::byte*>(args.outputs[0]) + row * pitch_ * (BitWidth(type_) / 8),
            .destination_pitch = pitch_,
            .destination_type = type_,
            .row = row,
            .rows = 1,
            .channel = 0,
            .channels = channels_});
  }

 private:
  Tail tail_;
  ApplyTailFunction* apply_;
  DataType type_;
  int64_t pitch_, channels_;
};

}  // namespace fuselite::kernels
