#include "runtime/buffer_region.h"

namespace fuselite {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kJoins = false;  // buffers stay apart, so that the sanitizer sees what leaves one
#else
constexpr bool kJoins = true;
#endif
// Behind the huge pages, small ones for what reaches over their end: one short of a huge page.
constexpr size_t kBeyond = kHugePage - 4096;

}  // namespace

AlignedBuffer BufferRegion::Take(size_t bytes) {
  if (!kJoins || used_ >= huge_ || bytes > huge_) return AlignedBuffer(bytes);
  if (pages_ == nullptr) pages_ = std::make_shared<AlignedBuffer>(huge_ + kBeyond);
  const size_t taken = AlignUp(bytes) + kAlignment, at = used_;
  if (pages_->data() == nullptr || taken > pages_->size() - at) return AlignedBuffer(bytes);
  used_ += taken;
  return AlignedBuffer(pages_, pages_->data() + at, bytes);
}

}  // namespace fuselite
