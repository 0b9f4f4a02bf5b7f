// One piece of memory for many AlignedBuffers.
#pragma once

#include <cstddef>

namespace fuselite {

// Of x86-64, and of aarch64 with pages of 4 KiB.
inline constexpr size_t kHugePage = size_t{2} << 20;

// While it is open, the AlignedBuffers that this thread makes lie side by side in huge pages, as
// far as those reach; the others are made as ever. The first touch of 4 KiB takes 0.4 us there, and
// 1.9 us, its release included, in pages of that size (AMD Zen 4, in a virtual machine): for a
// model's packed weights that is a tenth of opening it. One thread reads weights from memory at 30
// GB/s in huge pages, and at 23 in others, where a buffer of its own would have its last, partial
// one.
//
// `bytes` is what will be needed at least: huge pages that it does not fill are not taken, as their
// rest would be memory for nothing, and the last buffer may reach over their end. The memory lives
// as long as a buffer in it. One at a time for each thread.
class BufferRegion {
 public:
  explicit BufferRegion(size_t bytes);
  ~BufferRegion();
  BufferRegion(const BufferRegion&) = delete;
  BufferRegion& operator=(const BufferRegion&) = delete;

  // For AlignedBuffer: `bytes` at a multiple of kAlignment in the region that is open, or null.
  static std::byte* Take(size_t bytes);
  // Whether `data` was taken from a region, whose it is again.
  static bool Release(const std::byte* data);

 private:
  bool opened_ = false;
};

}  // namespace fuselite
