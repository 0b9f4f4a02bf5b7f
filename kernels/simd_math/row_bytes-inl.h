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

// That of a row of 4 to 15 bytes: vectors of 4 or 8 cover it, the second of which may overlap the
// first.
template <bool kMax, class T, class D>
HWY_INLINE T ExtremeOfTwo(D d, const T* in, size_t n) {
  auto v = ExtremeOf<kMax>(hn::LoadU(d, in), hn::LoadU(d, in + n - hn::Lanes(d)));
  if constexpr (hn::MaxLanes(D()) == 8) v = ExtremeOf<kMax>(v, hn::ShiftRightBytes<4>(d, v));
  v = ExtremeOf<kMax>(v, hn::ShiftRightBytes<2>(d, v));
  return hn::GetLane(ExtremeOf<kMax>(v, hn::ShiftRightBytes<1>(d, v)));
}

// A vector folded to 16 bytes.
template <bool kMax, class D>
HWY_INLINE hn::Vec<hn::FixedTag<hn::TFromD<D>, 16>> FoldedToBlock(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldedToBlock<kMax>(half,
                               ExtremeOf<kMax>(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Rows of fewer bytes are short: loops over rows choose once between these and others.
inline constexpr size_t kShortRow = 16;

// Precondition: 0 < n < kShortRow.
template <bool kMax, class T>
HWY_INLINE T ShortRowExtreme(const T* in, size_t n) {
  if (n >= 8) return ExtremeOfTwo<kMax>(hn::FixedTag<T, 8>(), in, n);
  if (n >= 4) return ExtremeOfTwo<kMax>(hn::FixedTag<T, 4>(), in, n);
  // There are no branches: which value is larger cannot be foretold.
  T extreme = in[0];
  for (size_t i = 1; i < n; ++i) {
    extreme = kMax ? HWY_MAX(extreme, in[i]) : HWY_MIN(extreme, in[i]);
  }
  return extreme;
}

// The last vector overlaps the one before. Precondition: n >= kShortRow.
template <bool kMax, class T>
HWY_INLINE T LongRowExtreme(const T* in, size_t n) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 16> block;
  auto extreme = hn::LoadU(block, in + n - 16);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (n >= lanes) {
    auto wide = hn::LoadU(d, in);
    for (i = lanes; i + lanes <= n; i += lanes) wide = ExtremeOf<kMax>(wide, hn::LoadU(d, in + i));
    extreme = ExtremeOf<kMax>(extreme, FoldedToBlock<kMax>(d, wide));
  }
  for (; i + 16 <= n; i += 16) extreme = ExtremeOf<kMax>(extreme, hn::LoadU(block, in + i));
  return ExtremeOfBlock<kMax, T>(extreme);
}

// Precondition: n > 0.
template <bool kMax, class T>
HWY_INLINE T RowExtreme(const T* in, size_t n) {
  return n < kShortRow ? ShortRowExtreme<kMax>(in, n) : LongRowExtreme<kMax>(in, n);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
