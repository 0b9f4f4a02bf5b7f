// Loads and stores of the last, incomplete vector of a row, for every target.
//
// Highway's masked operations may touch memory behind the mask below AVX2 (and for 8 and 16 bits on
// AVX2), so these go through a buffer there.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_PARTIAL_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_PARTIAL_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_PARTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
constexpr bool HasMaskedMemory() {
#if HWY_TARGET <= HWY_AVX3
  return true;
#elif HWY_TARGET == HWY_AVX2
  return sizeof(hn::TFromD<D>) >= 4;
#else
  return false;
#endif
}

// The first `n` lanes from `p`, zeros behind. Reads nothing else. Precondition: 0 < n <= Lanes(d).
template <class D>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const hn::TFromD<D>* p, size_t n) {
  if constexpr (HasMaskedMemory<D>()) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, p);
  } else {
    HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)] = {};
    std::memcpy(buffer, p, n * sizeof(*p));
    return hn::Load(d, buffer);
  }
}

// Writes the first `n` lanes and nothing else. Precondition: 0 < n <= Lanes(d).
template <class D>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, hn::TFromD<D>* p, size_t n) {
  if constexpr (HasMaskedMemory<D>()) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  } else {
    HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, n * sizeof(*p));
  }
}

// f(i, count) for each vector's worth of [0, n), of which the last may be less than a vector.
template <class D, class F>
HWY_INLINE void ForVectors(D d, size_t n, F f) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, lanes);
  if (i < n) f(i, n - i);
}

// LoadPartial and StorePartial with a check: whole vectors where n >= Lanes(d).
template <class D>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const hn::TFromD<D>* p, size_t n) {
  return n < hn::Lanes(d) ? LoadPartial(d, p, n) : hn::LoadU(d, p);
}
template <class D>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, hn::TFromD<D>* p, size_t n) {
  if (n < hn::Lanes(d)) {
    StorePartial(v, d, p, n);
  } else {
    hn::StoreU(v, d, p);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
