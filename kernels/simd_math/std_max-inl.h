// The larger and the smaller of two, with one answer for NaN on every target.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_STD_MAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_STD_MAX_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_STD_MAX_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_STD_MAX_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// std::max(a, b) and std::min(a, b), which give `a` where one of them is NaN. So does x86's
// instruction with its second operand; those of other machines prefer the number.
template <class V>
HWY_INLINE V StdMax(V a, V b) {
#if HWY_ARCH_X86
  return hn::Max(b, a);
#else
  return hn::IfThenElse(hn::Lt(a, b), b, a);
#endif
}
template <class V>
HWY_INLINE V StdMin(V a, V b) {
#if HWY_ARCH_X86
  return hn::Min(b, a);
#else
  return hn::IfThenElse(hn::Lt(b, a), b, a);
#endif
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
