// Memory that the system has again as soon as it is given back.
#pragma once

#include <cstddef>
#include <memory>

namespace fuselite {

// Pages of the system, cleared, which go back to it with the last pointer; null where there are
// none. The heap keeps what is given back, below whatever was taken later: of the 23 MiB that
// ViT-tiny takes, 2 were what opening it had needed for a moment.
std::shared_ptr<std::byte> TakePages(size_t bytes);

// From so many bytes on, pages are worth their rounding and the two calls.
inline constexpr size_t kWorthPages = size_t{64} << 10;

// For vectors that are large for a moment: in pages from kWorthPages on, else in the heap.
template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count);
  void deallocate(T* elements, size_t count);
  friend bool operator==(PageAllocator, PageAllocator) { return true; }
};

namespace internal {
// kWorthPages bytes or more. Throws std::bad_alloc.
void* AllocatePages(size_t bytes);
void FreePages(void* memory, size_t bytes);
}  // namespace internal

template <class T>
T* PageAllocator<T>::allocate(size_t count) {
  const size_t bytes = count * sizeof(T);
  if (bytes < kWorthPages) return std::allocator<T>().allocate(count);
  return static_cast<T*>(internal::AllocatePages(bytes));
}

template <class T>
void PageAllocator<T>::deallocate(T* elements, size_t count) {
  const size_t bytes = count * sizeof(T);
  if (bytes < kWorthPages) return std::allocator<T>().deallocate(elements, count);
  internal::FreePages(elements, bytes);
}

}  // namespace fuselite
