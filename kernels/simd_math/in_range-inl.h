// Conversions of float32 to int32 that take for granted that the values fit. Highway's own put
// right what does not, in three to four instructions more.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_IN_RANGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_IN_RANGE_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_IN_RANGE_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_IN_RANGE_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// NearestInRange rounds halves to even, TruncatedInRange toward zero. Precondition: |x| < 2^31,
// else the lane is anything.
#if HWY_ARCH_X86
template <size_t kLanes>
HWY_INLINE hn::Vec128<int32_t, kLanes> NearestInRange(hn::Vec128<float, kLanes> x) {
  return hn::Vec128<int32_t, kLanes>{_mm_cvtps_epi32(x.raw)};
}
template <size_t kLanes>
HWY_INLINE hn::Vec128<int32_t, kLanes> TruncatedInRange(hn::Vec128<float, kLanes> x) {
  return hn::Vec128<int32_t, kLanes>{_mm_cvttps_epi32(x.raw)};
}
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<int32_t> NearestInRange(hn::Vec256<float> x) {
  return hn::Vec256<int32_t>{_mm256_cvtps_epi32(x.raw)};
}
HWY_INLINE hn::Vec256<int32_t> TruncatedInRange(hn::Vec256<float> x) {
  return hn::Vec256<int32_t>{_mm256_cvttps_epi32(x.raw)};
}
#endif
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<int32_t> NearestInRange(hn::Vec512<float> x) {
  return hn::Vec512<int32_t>{_mm512_cvtps_epi32(x.raw)};
}
HWY_INLINE hn::Vec512<int32_t> TruncatedInRange(hn::Vec512<float> x) {
  return hn::Vec512<int32_t>{_mm512_cvttps_epi32(x.raw)};
}
#endif
#else
template <class V>
HWY_INLINE hn::Vec<hn::RebindToSigned<hn::DFromV<V> > > NearestInRange(V x) {
  return hn::NearestInt(x);
}
template <class V>
HWY_INLINE hn::Vec<hn::RebindToSigned<hn::DFromV<V> > > TruncatedInRange(V x) {
  return hn::ConvertTo(hn::RebindToSigned<hn::DFromV<V> >(), x);
}
#endif

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
