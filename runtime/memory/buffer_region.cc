#include "runtime/memory/buffer_region.h"

#include "runtime/support/sanitizers.h"

namespace fuselite {
namespace {

// Buffers stay apart where the sanitizer is to see what leaves one.
constexpr bool kJoins = !kAddressSanitizer;
// Behind the huge pages, small ones for what reaches over their end: one short of a huge page.
constexpr size_t kBeyond = kHugePage - 4096;

}  // namespace

AlignedBuffer BufferRegion::Take(size_t bytes) {
  if (!kJoins || bytes > huge_) return AlignedBuffer(bytes);
  const std::lock_guard lock(mutex_);
  if (used_ >= huge_) return AlignedBuffer(bytes);
  if (pages_ == nullptr) pages_ = std::make_shared<AlignedBuffer>(huge_ + kBeyond);
  const size_t taken = AlignUp(bytes) + kAlignment, at = used_;
  if (taken > pages_->size() - at) return AlignedBuffer(bytes);  // as where there are no pages
  used_ += taken;
  return AlignedBuffer(pages_, pages_->data() + at, bytes);
}

}  // namespace fuselite
