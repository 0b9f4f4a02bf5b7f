// Memory aligned for vectors.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace fuselite {

// Cache lines and the widest vectors are 64 bytes.
inline constexpr size_t kAlignment = 64;
// What x86-64 has, and aarch64 with pages of 4 KiB.
inline constexpr size_t kHugePage = size_t{2} << 20;

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
  // Memory that `owner` keeps: a part of a larger piece, or of a mapped file. Precondition: `data`
  // is a multiple of kAlignment, and what is readable behind the bytes is the owner's too.
  AlignedBuffer(std::shared_ptr<const void> owner, std::byte* data, size_t bytes)
      : data_(data), size_(bytes), owner_(std::move(owner)) {}
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
    std::swap(owner_, other.owner_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> owner_;  // whose memory this is; null: its own
};

}  // namespace fuselite
