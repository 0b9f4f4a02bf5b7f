// Memory aligned for vectors, owned.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace fuselite {

// Cache lines and the widest vectors are 64 bytes.
inline constexpr size_t kAlignment = 64;

inline constexpr size_t AlignUp(size_t bytes, size_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// `bytes` bytes at a multiple of kAlignment, followed by kAlignment readable bytes, so that a
// kernel may load a whole vector at the last element. Contents are undefined.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // data() is null where memory is exhausted and bytes > 0.
  explicit AlignedBuffer(size_t bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void swap(AlignedBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace fuselite
