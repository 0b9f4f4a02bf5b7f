// The look-up of kernels/numbers/interpolated_table.h in every lane.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_INTERPOLATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_INTERPOLATE_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_INTERPOLATE_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_INTERPOLATE_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The result is in each lane's low 16 bits; those above mean nothing. `x` is within int16,
// `middle_piece` the table's.
HWY_INLINE hn::Vec<hn::ScalableTag<int32_t>> Interpolate(const int32_t* middle_piece,
                                                         hn::Vec<hn::ScalableTag<int32_t>> x) {
  const hn::ScalableTag<int32_t> d;
  const auto piece = hn::GatherIndex(d, middle_piece, hn::ShiftRight<7>(x));
  const auto rise = hn::Mul(hn::ShiftRight<16>(piece), hn::And(x, hn::Set(d, 0x7f)));
  return hn::Add(piece, hn::ShiftRight<7>(hn::Add(rise, hn::Set(d, 64))));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
