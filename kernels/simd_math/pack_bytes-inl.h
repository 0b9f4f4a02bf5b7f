// Two vectors of 16-bit integers as one of bytes, which saturate.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_PACK_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_PACK_BYTES_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_PACK_BYTES_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_PACK_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each block of 16 bytes has the eight of `a` in that block, then those of `b`. D: int8_t or
// uint8_t.
template <class D, class V>
HWY_INLINE hn::Vec<D> PackBytes(D d, V a, V b) {
  [[maybe_unused]] constexpr bool kSigned = std::is_signed_v<hn::TFromD<D> >;
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<D>{kSigned ? _mm512_packs_epi16(a.raw, b.raw) : _mm512_packus_epi16(a.raw, b.raw)};
#elif HWY_TARGET <= HWY_AVX2
  return hn::Vec<D>{kSigned ? _mm256_packs_epi16(a.raw, b.raw) : _mm256_packus_epi16(a.raw, b.raw)};
#elif HWY_ARCH_X86
  return hn::Vec<D>{kSigned ? _mm_packs_epi16(a.raw, b.raw) : _mm_packus_epi16(a.raw, b.raw)};
#else
  const hn::Half<D> half;
  return hn::Combine(d, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#endif
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
