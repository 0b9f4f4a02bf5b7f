// Constants of a model as arrays. In the file they are as aligned as it left them, and values of
// four or two bits share bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/packed_integers.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// The type that the values of ReadableConstant have: int8 of int4 and int2.
inline DataType ReadableType(DataType type) {
  return type == DataType::kInt4 || type == DataType::kInt2 ? DataType::kInt8 : type;
}

// Points at the constant itself where it can be read as it is, else at a copy. Null for an absent
// operand. The copy is null where there is no memory for it.
class ReadableConstant {
 public:
  explicit ReadableConstant(const TensorInfo& info) {
    if (info.absent()) return;
    values_ = info.data;
    const bool packed = info.type != ReadableType(info.type);
    const auto element_bytes = std::max<uintptr_t>(BitWidth(info.type) / 8, 1);
    if (!packed && reinterpret_cast<uintptr_t>(info.data) % element_bytes == 0) return;
    copy_ = AlignedBuffer(packed ? static_cast<size_t>(info.elements()) : info.bytes());
    values_ = copy_.data();
    if (values_ == nullptr) return;
    if (!packed) {
      std::memcpy(copy_.data(), info.data, info.bytes());
      return;
    }
    const PackedIntegers weights(info.type, info.data);
    for (int64_t i = 0; i < info.elements(); ++i) {
      copy_.data()[i] = static_cast<std::byte>(weights[i]);
    }
  }
  const void* values() const { return values_; }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(values_);
  }

 private:
  const void* values_ = nullptr;
  AlignedBuffer copy_;
};

}  // namespace fuselite::kernels
