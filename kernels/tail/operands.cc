#include "kernels/tail/operands.h"

namespace fuselite::kernels {

bool TailIsLinear(const Tail& tail) {
  for (const TailStage& stage : tail.stages) {
    const TailOperand& y = stage.operand;
    if (y.input < 0 || tail.rows_per_batch == INT64_MAX) continue;
    if (y.batch_stride != y.row_stride * tail.rows_per_batch) return false;
  }
  return true;
}

void BindTailOperands(const Tail& tail, const void* const* inputs, int64_t row, int64_t channel,
                      TailSlots* slots) {
  const std::byte** slot = slots->data();
  for (const TailStage& stage : tail.stages) {
    const TailOperand& y = stage.operand;
    if (y.input < 0) continue;
    const int64_t element = row / tail.rows_per_batch * y.batch_stride +
                            row % tail.rows_per_batch * y.row_stride + channel * y.channel_stride;
    *slot++ = static_cast<const std::byte*>(inputs[y.input]) + element * ElementBytes(y);
  }
}

}  // namespace fuselite::kernels
