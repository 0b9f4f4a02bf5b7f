// Constant weights as bytes: what packs them need not know of those that lie two to a byte.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/gemm/quantized_operands.h"
#include "runtime/tensor.h"

namespace fuselite::jit {

// The type that ByteWeights have: int8 of int4.
inline DataType ByteType(DataType weights) {
  return weights == DataType::kInt4 ? DataType::kInt8 : weights;
}

// Points at the constant itself, or at its unpacked form.
class ByteWeights {
 public:
  explicit ByteWeights(const TensorInfo& info) : source_(info.data) {
    if (info.type != DataType::kInt4) return;
    const kernels::Int4Weights weights(info.data);
    copy_.resize(info.elements());
    for (int64_t i = 0; i < info.elements(); ++i) copy_[i] = static_cast<std::byte>(weights[i]);
  }
  const std::byte* data() const {
    return copy_.empty() ? static_cast<const std::byte*>(source_) : copy_.data();
  }

 private:
  const void* source_;
  std::vector<std::byte> copy_;
};

}  // namespace fuselite::jit
