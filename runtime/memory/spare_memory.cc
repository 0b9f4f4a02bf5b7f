#include "runtime/memory/spare_memory.h"

#include <algorithm>
#include <new>
#include <utility>

namespace fuselite {
namespace {

// What malloc answers without asking the system for pages.
constexpr size_t kSmall = 64 << 10;

}  // namespace

AlignedBuffer SpareMemory::Take(size_t bytes) {
  if (bytes < kSmall) return AlignedBuffer(bytes);
  const auto found = std::ranges::lower_bound(pieces_, bytes, {}, &AlignedBuffer::size);
  if (found == pieces_.end()) {
    if (!pieces_.empty()) pieces_.pop_back();
    return AlignedBuffer(bytes);
  }
  AlignedBuffer taken = std::move(*found);
  pieces_.erase(found);
  return taken;
}

void SpareMemory::Give(AlignedBuffer buffer) noexcept {
  if (buffer.size() < kSmall) return;
  const auto place = std::ranges::upper_bound(pieces_, buffer.size(), {}, &AlignedBuffer::size);
  try {
    pieces_.insert(place, std::move(buffer));
  } catch (const std::bad_alloc&) {  // then it is freed
  }
}

}  // namespace fuselite
