#include "jit/tail/sum_tail.h"

namespace fuselite::jit {

std::string SumTail::key() const {
  return (requantization ? requantization->key() : "") +
         (dequantization ? dequantization->key() : "") + (residual ? residual->key() : "");
}

SumTailBinding::SumTailBinding(const SumTail& tail)
    : dequantizes_(tail.dequantization.has_value()) {
  if (tail.residual) {
    residual_input_ = tail.residual->operand.input;
    residual_row_stride_ = tail.residual->operand.row_stride;
  }
  if (tail.dequantization) floats_ = tail.dequantization->tail;
}

}  // namespace fuselite::jit
