// One piece of memory for many AlignedBuffers.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/aligned_buffer.h"

namespace fuselite {

// Buffers that lie side by side in huge pages. The first touch of 4 KiB takes 0.4 us there, and 1.9
// us, its release included, in pages of that size (AMD Zen 4, in a virtual machine): for a model's
// packed weights that is a tenth of opening it. One thread reads weights from memory at 30 GB/s in
// huge pages, and at 23 in others, where a buffer of its own would have its last, partial one.
//
// `bytes` is what will be needed at least: huge pages that it does not fill are not taken, as their
// rest would be memory for nothing, and the last buffer may reach over their end. They are taken
// with the first buffer, and live as long as one of them. For one thread at a time.
class BufferRegion {
 public:
  explicit BufferRegion(size_t bytes) : huge_(bytes / kHugePage * kHugePage) {}

  // What AlignedBuffer(bytes) is; outside of the region where that has no room.
  AlignedBuffer Take(size_t bytes);

 private:
  size_t huge_, used_ = 0;
  std::shared_ptr<const AlignedBuffer> pages_;
};

}  // namespace fuselite
