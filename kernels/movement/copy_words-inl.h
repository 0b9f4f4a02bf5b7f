// A few bytes, moved as words that may overlap.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_COPY_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_COPY_WORDS_INL_H_
#undef FUSELITE_KERNELS_COPY_WORDS_INL_H_
#else
#define FUSELITE_KERNELS_COPY_WORDS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE T* As(std::byte* p) {
  return reinterpret_cast<T*>(p);
}
template <class T>
HWY_INLINE const T* As(const std::byte* p) {
  return reinterpret_cast<const T*>(p);
}

// Moves `bytes` in [sizeof(T), 2 * sizeof(T)] as two words that may overlap.
template <class T>
HWY_INLINE void MoveTwoWords(const std::byte* in, std::byte* out, int64_t bytes) {
  T first, last;
  std::memcpy(&first, in, sizeof(T));
  std::memcpy(&last, in + bytes - sizeof(T), sizeof(T));
  std::memcpy(out, &first, sizeof(T));
  std::memcpy(out + bytes - sizeof(T), &last, sizeof(T));
}

// Moves up to 16 bytes.
HWY_INLINE void MoveFew(const std::byte* in, std::byte* out, int64_t bytes) {
  if (bytes >= 8) return MoveTwoWords<uint64_t>(in, out, bytes);
  if (bytes >= 4) return MoveTwoWords<uint32_t>(in, out, bytes);
  if (bytes >= 2) return MoveTwoWords<uint16_t>(in, out, bytes);
  if (bytes == 1) *out = *in;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
