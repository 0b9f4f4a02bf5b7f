// Memory aligned for vectors, owned.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace fuselite {

// Cache lines and the widest vectors are 64 bytes.
inline constexpr size_t kAlignment = 64;
// Of x86-64, and of aarch64 with pages of 4 KiB.
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
  // A part of `whole`, which lives as long as one of its parts. Precondition: `at` is a multiple of
  // kAlignment, and the part with what is readable behind it lies in `whole`.
  AlignedBuffer(std::shared_ptr<const AlignedBuffer> whole, size_t at, size_t bytes)
      : data_(whole->data_ + at), size_(bytes), whole_(std::move(whole)) {}
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
    std::swap(whole_, other.whole_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const AlignedBuffer> whole_;  // whose part this is; null: the memory is its own
};

}  // namespace fuselite
