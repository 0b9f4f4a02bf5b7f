// Products of neighbouring lanes, summed by twos: what 8-bit and 16-bit dot products are made of.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_BYTE_PRODUCTS_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_BYTE_PRODUCTS_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_BYTE_PRODUCTS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a[2i] b[2i] + a[2i+1] b[2i+1]. Preconditions: a < 128, and the sums fit 16 bits.
#if HWY_ARCH_X86
HWY_INLINE hn::Vec128<int16_t> PairProducts(hn::Vec128<uint8_t> a, hn::Vec128<int8_t> b) {
  return hn::Vec128<int16_t>{_mm_maddubs_epi16(a.raw, b.raw)};
}
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<int16_t> PairProducts(hn::Vec256<uint8_t> a, hn::Vec256<int8_t> b) {
  return hn::Vec256<int16_t>{_mm256_maddubs_epi16(a.raw, b.raw)};
}
#endif
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<int16_t> PairProducts(hn::Vec512<uint8_t> a, hn::Vec512<int8_t> b) {
  return hn::Vec512<int16_t>{_mm512_maddubs_epi16(a.raw, b.raw)};
}
#endif
#else
HWY_INLINE hn::Vec128<int16_t> PairProducts(hn::Vec128<uint8_t> a, hn::Vec128<int8_t> b) {
  const int8x16_t x = vreinterpretq_s8_u8(a.raw);
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(b.raw));
  const int16x8_t high = vmull_s8(vget_high_s8(x), vget_high_s8(b.raw));
  return hn::Vec128<int16_t>(vpaddq_s16(low, high));
}
#endif

// As PairProducts(), of 16 bits, to 32.
template <class V16>
HWY_INLINE auto PairDots(V16 a, V16 b) {
  const hn::RepartitionToWide<hn::DFromV<V16>> d;
  auto odd = hn::Zero(d);
  const auto even = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), odd);
  return hn::RearrangeToOddPlusEven(even, odd);
}

// v[2i] + v[2i+1].
template <class V16>
HWY_INLINE auto PairSums(V16 v) {
  return PairDots(v, hn::Set(hn::DFromV<V16>(), 1));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
