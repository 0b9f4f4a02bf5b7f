// Constants of a model are as aligned as the file left them; this gives them as arrays.
#pragma once

#include <cstring>

#include "runtime/aligned_buffer.h"
#include "runtime/tensor.h"

namespace fuselite::jit {

// Points at the constant itself where it is aligned, else at a copy. Null for an absent operand.
class AlignedConstant {
 public:
  explicit AlignedConstant(const TensorInfo& info)
      : source_(info.absent() ? nullptr : info.data), bytes_(source_ ? info.bytes() : 0) {
    if (reinterpret_cast<uintptr_t>(source_) % alignof(int64_t) == 0) return;
    copy_ = AlignedBuffer(bytes_);
    if (copy_.data() != nullptr) std::memcpy(copy_.data(), source_, bytes_);
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(copy_.data() != nullptr ? copy_.data() : source_);
  }
  const void* source() const { return source_; }
  size_t bytes() const { return bytes_; }

 private:
  const void* source_;
  size_t bytes_;
  AlignedBuffer copy_;
};

}  // namespace fuselite::jit
