// The largest or smallest byte of a row.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_ROW_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_ROW_BYTES_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_ROW_BYTES_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_ROW_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kMax, class V>
HWY_INLINE V ExtremeOf(V a, V b) {
  return kMax ? hn::Max(a, b) : hn::Min(a, b);
}

// That of 16 bytes, by folding them onto each other.
template <bool kMax, class T>
HWY_INLINE T ExtremeOfBlock(hn::Vec<hn::FixedTag<T, 16>> v) {
  const hn::FixedTag<T, 16> d;
  v = ExtremeOf<kMax>(v, hn::CombineShiftRightBytes<8>(d, v, v));
  v = ExtremeOf<kMax>(v, hn::CombineShiftRightBytes<4>(d, v, v));
  v = ExtremeOf<kMax>(v, hn::CombineShiftRightBytes<2>(d, v, v));
  return hn::GetLane(ExtremeOf<kMax>(v, hn::CombineShiftRightBytes<1>(d, v, v)));
}

// The last vector overlaps the one before. Precondition: n > 0.
template <bool kMax, class T>
HWY_INLINE T RowExtreme(const T* in, size_t n) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 16> block;
  if (n < 16) {
    // There are no branches: which value is larger cannot be foretold.
    T extreme = in[0];
    for (size_t i = 1; i < n; ++i) {
      extreme = kMax ? HWY_MAX(extreme, in[i]) : HWY_MIN(extreme, in[i]);
    }
    return extreme;
  }
  auto extreme = hn::LoadU(block, in + n - 16);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (n >= lanes) {
    auto wide = hn::LoadU(d, in);
    for (i = lanes; i + lanes <= n; i += lanes) wide = ExtremeOf<kMax>(wide, hn::LoadU(d, in + i));
    HWY_ALIGN T all[hn::MaxLanes(d)];
    hn::Store(wide, d, all);
    for (size_t k = 0; k < lanes; k += 16) {
      extreme = ExtremeOf<kMax>(extreme, hn::Load(block, all + k));
    }
  }
  for (; i + 16 <= n; i += 16) extreme = ExtremeOf<kMax>(extreme, hn::LoadU(block, in + i));
  return ExtremeOfBlock<kMax, T>(extreme);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
