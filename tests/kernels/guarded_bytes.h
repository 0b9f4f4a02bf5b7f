// Memory between two pages that nobody may touch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace fuselite::kernels::testing {

// A copy of `bytes` bytes that begins right behind such a page, or ends right before one (`gap`
// bytes before it). Whoever reads or writes beyond that end is killed: sanitizers do not see
// emitted code, the pages do.
class GuardedBytes {
 public:
  enum class Edge { kBegin, kEnd };

  GuardedBytes(const void* from, size_t bytes, Edge edge, size_t gap = 0) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    gap += MachineGap();
    const size_t inner = (bytes + gap + page - 1) / page * page;
    size_ = inner + 2 * page;
    void* memory = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    map_ = static_cast<std::byte*>(memory);
    if (inner > 0 && mprotect(map_ + page, inner, PROT_READ | PROT_WRITE) != 0) return;
    data_ = map_ + page + (edge == Edge::kEnd ? inner - bytes - gap : 0);
    if (bytes > 0) std::memcpy(data_, from, bytes);
  }
  ~GuardedBytes() {
    if (map_ != nullptr) munmap(map_, size_);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  // Null where the system has no memory.
  std::byte* data() const { return data_; }
  // From now on nobody may touch the copy either. Its address stays its own.
  void Forbid() {
    if (map_ != nullptr) mprotect(map_, size_, PROT_NONE);
  }

 private:
  static size_t MachineGap() {
    const char* const gap = std::getenv("FUSELITE_TEST_GUARD_GAP");
    return gap == nullptr ? 0 : std::strtoul(gap, nullptr, 10);
  }

  std::byte* map_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace fuselite::kernels::testing
