// Counts what a program takes from the heap and gives back. For one file of a program without
// sanitizers, which replace malloc themselves.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace fuselite::testing {

// Of the calling thread: how often it took memory, and how many blocks it has not given back.
struct HeapCounts {
  int64_t taken = 0, held = 0;
};
inline thread_local HeapCounts heap_counts;

inline void* Counted(void* memory) {
  heap_counts.taken += memory != nullptr;
  heap_counts.held += memory != nullptr;
  return memory;
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
void* malloc(size_t bytes) { return fuselite::testing::Counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) {
  return fuselite::testing::Counted(__libc_calloc(count, bytes));
}
void* realloc(void* memory, size_t bytes) {
  fuselite::testing::heap_counts.held -= memory != nullptr;
  return fuselite::testing::Counted(__libc_realloc(memory, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fuselite::testing::Counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = fuselite::testing::Counted(__libc_memalign(alignment, bytes));
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  fuselite::testing::heap_counts.held -= memory != nullptr;
  __libc_free(memory);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name,misc-definitions-in-headers)
}
