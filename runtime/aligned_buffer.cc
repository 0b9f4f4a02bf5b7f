#include "runtime/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/buffer_region.h"

namespace fuselite {
namespace {

// Sizes come from models: a malformed one must not be taken at its word by a kernel that
// overcommits.
constexpr size_t kMaxBytes = size_t{1} << 39;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) {
  if (bytes > kMaxBytes) return;
  const bool huge = bytes >= kHugePage;
  const size_t taken = AlignUp(bytes) + kAlignment;
  void* memory = BufferRegion::Take(taken);
  const bool own = memory == nullptr;
  if (memory == nullptr && posix_memalign(&memory, huge ? kHugePage : kAlignment, taken) != 0) {
    return;
  }
#ifdef MADV_HUGEPAGE
  // Advice only: a kernel without huge pages says no, and nothing is lost. The last, partial page
  // is not ours alone.
  if (huge && own) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    (void)madvise(memory, bytes / page * page, MADV_HUGEPAGE);
  }
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr && !BufferRegion::Release(data_)) std::free(data_);
}

}  // namespace fuselite
