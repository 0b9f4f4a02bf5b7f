#include "kernels/gemm/output_tail.h"

#include <algorithm>

#include "kernels/check_tail.h"

namespace fuselite::kernels {

Result<FloatTail> MakeFloatTail(const OpDescription& op, Activation activation) {
  FloatTail tail;
  tail.rest.rows_per_batch = op.tail.rows_per_batch;
  auto next = op.tail.stages.begin();
  if (!ActivationRange(activation, &tail.min, &tail.max)) {
    if (!AppendActivation(activation, &tail.rest)) {
      return Unsupported("fused activation ", static_cast<int>(activation), " is not computed");
    }
  } else if (activation == Activation::kNone && next != op.tail.stages.end() &&
             next->kind == TailStage::Kind::kUnary && next->unary == UnaryKind::kClamp) {
    tail.min = next->a;
    tail.max = next->b;
    ++next;
  }
  tail.rest.stages.insert(tail.rest.stages.end(), next, op.tail.stages.end());
  FUSELITE_RETURN_IF_ERROR(CheckTail(op, DataType::kFloat32));
  return tail;
}

void StoreFloatRow(const FloatTail& tail, const KernelArgs& args, const TensorInfo& output,
                   int64_t row, float* sums) {
  const int64_t channels = output.shape.dim(-1);
  for (int64_t c = 0; c < channels; ++c) {
    sums[c] = std::min(std::max(sums[c], tail.min), tail.max);
  }
  const int64_t offset = row * output.pitch() * (BitWidth(output.type) / 8);
  ApplyTailReference(tail.rest, args.inputs,
                     {.source = sums,
                      .source_pitch = channels,
                      .source_type = DataType::kFloat32,
                      .destination = static_cast<std::byte*>(args.outputs[0]) + offset,
                      .destination_pitch = output.pitch(),
                      .destination_type = output.type,
                      .row = row,
                      .rows = 1,
                      .channel = 0,
                      .channels = channels});
}

}  // namespace fuselite::kernels
