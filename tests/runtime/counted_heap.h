// Counts what a program takes from the heap and gives back, and refuses it. For one file of a
// program without sanitizers, which replace malloc themselves.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace fuselite::testing {

// How often the calling thread took memory, and how many blocks it has not given back, of how many
// bytes.
struct HeapCounts {
  int64_t taken = 0, held = 0, bytes = 0;
};
inline thread_local HeapCounts heap_counts;

// How many blocks of all threads nobody has given back.
inline std::atomic<int64_t> heap_held{0};

// Counts a block that is taken (1) or given back (-1).
inline void Hold(void* block, int blocks) {
  if (block == nullptr) return;
  heap_counts.held += blocks;
  heap_counts.bytes += blocks * static_cast<int64_t>(malloc_usable_size(block));
  heap_held.fetch_add(blocks, std::memory_order_relaxed);
}

// So many requests of the calling thread are still granted before one is refused; negative: all.
inline thread_local int64_t heap_grants = -1;

inline bool IsRefused() {
  const bool refused = heap_grants >= 0 && heap_grants-- == 0;
  if (refused) errno = ENOMEM;
  return refused;
}

inline void* Counted(void* memory) {
  heap_counts.taken += memory != nullptr;
  Hold(memory, 1);
  return memory;
}

// Whether request `at` of what `body` asks for was refused: false where there are fewer.
template <class Body>
bool Refuses(int64_t at, Body body) {
  heap_grants = at;
  body();
  const bool refused = heap_grants < 0;
  heap_grants = -1;
  return refused;
}

}  // namespace fuselite::testing

// glibc's own names, which the functions of the program hide.
extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* memory);                         // NOLINT(bugprone-reserved-identifier)

// The header's names for the parameters are reserved ones; definitions are this one file's.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,misc-definitions-in-headers)
void* malloc(size_t bytes) {
  if (fuselite::testing::IsRefused()) return nullptr;
  return fuselite::testing::Counted(__libc_malloc(bytes));
}
void* calloc(size_t count, size_t bytes) {
  if (fuselite::testing::IsRefused()) return nullptr;
  return fuselite::testing::Counted(__libc_calloc(count, bytes));
}
void* realloc(void* memory, size_t bytes) {
  if (fuselite::testing::IsRefused()) return nullptr;
  fuselite::testing::Hold(memory, -1);
  return fuselite::testing::Counted(__libc_realloc(memory, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  if (fuselite::testing::IsRefused()) return nullptr;
  return fuselite::testing::Counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = aligned_alloc(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  fuselite::testing::Hold(memory, -1);
  __libc_free(memory);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name,misc-definitions-in-headers)
}
