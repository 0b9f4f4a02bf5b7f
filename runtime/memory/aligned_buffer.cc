#include "runtime/memory/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace fuselite {
namespace {

// Sizes come from models: a malformed one must not be taken at its word by a kernel that
// overcommits.
constexpr size_t kMaxBytes = size_t{1} << 39;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) {
  if (bytes > kMaxBytes) return;
  const bool huge = bytes >= kHugePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, huge ? kHugePage : kAlignment, AlignUp(bytes) + kAlignment) != 0) {
    return;
  }
#ifdef MADV_HUGEPAGE
  // Advice only: a kernel without huge pages says no, and nothing is lost. The last, partial page
  // is not this buffer's alone.
  if (huge) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    (void)madvise(memory, bytes / page * page, MADV_HUGEPAGE);
  }
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (owner_ == nullptr) std::free(data_);
}

}  // namespace fuselite
