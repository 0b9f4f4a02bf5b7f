#include "runtime/memory/pages.h"

#include <sys/mman.h>

#include <new>

#include "runtime/support/sanitizers.h"

namespace fuselite {
namespace {

// The sanitizer sees what leaves memory of the heap only.
constexpr bool kFromHeap = kAddressSanitizer;

void* Map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

namespace internal {

void* AllocatePages(size_t bytes) {
  if (kFromHeap) return ::operator new (bytes, std::align_val_t{4096});
  void* memory = Map(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void FreePages(void* memory, size_t bytes) {
  if (kFromHeap) return ::operator delete (memory, std::align_val_t{4096});
  (void)munmap(memory, bytes);
}

}  // namespace internal

std::shared_ptr<std::byte> TakePages(size_t bytes) {
  void* memory = Map(bytes);
  if (memory == nullptr) return nullptr;
  return {static_cast<std::byte*>(memory),
          [bytes](std::byte* pages) { (void)munmap(pages, bytes); }};
}

}  // namespace fuselite
