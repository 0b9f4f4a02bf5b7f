#include "jit/tail/sum_tail.h"

#include <algorithm>

namespace fuselite::jit {

std::string SumTail::key() const {
  std::string key =
      (requantization ? requantization->key() : "") + (dequantization ? dequantization->key() : "");
  for (const Residual& residual : residuals) key += residual.key();
  return key;
}

int64_t SumTail::longest_residual_step() const {
  int64_t step = 0;
  for (const Residual& residual : residuals) step = std::max(step, residual.operand.row_stride);
  return step;
}

SumTailBinding::SumTailBinding(const SumTail& tail)
    : dequantizes_(tail.dequantization.has_value()), residual_count_(tail.residuals.size()) {
  for (size_t r = 0; r < residual_count_; ++r) {
    const Residual& residual = tail.residuals[r];
    residuals_[r] = {.row_stride = residual.operand.row_stride,
                     .batch_stride = residual.operand.batch_stride,
                     .rows_per_batch = residual.rows_per_batch,
                     .input = residual.operand.input};
  }
  if (tail.dequantization) floats_ = tail.dequantization->tail;
}

}  // namespace fuselite::jit
