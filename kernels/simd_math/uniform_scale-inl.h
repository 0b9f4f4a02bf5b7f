// MultiplyByQuantizedMultiplier of kernels/numbers/quantization.h, to the bit, by one multiplier
// for all lanes.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_UNIFORM_SCALE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_UNIFORM_SCALE_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_UNIFORM_SCALE_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_UNIFORM_SCALE_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// TFLite's two roundings in one: with p = x m, m >= 0 and a right shift e >= 1 the result is
//   (p + 2^30 + 2^(30+e) - (x < 0 ? 2^31 : 0)) >> (31 + e),   and (p + 2^30) >> 31 for e = 0.
// For e = 0 twice the sum is taken. Either way the sum's high half is shifted on in 32 bits, so
// that no shift of 64 bits needs to be arithmetic. A negative x has 2^31 as its own bit 31.
class UniformScale {
 public:
  using D = hn::ScalableTag<int32_t>;
  using V = hn::Vec<D>;

  // kTiesUpwards: the second rounding takes ties upwards (ScaleTiesUpwards), not away from zero.
  enum Ties : bool { kTiesAway, kTiesUpwards };
  HWY_INLINE UniformScale(int32_t multiplier, int32_t shift, Ties ties = kTiesAway)
      : multiplier_(hn::Set(D(), multiplier)),
        left_(shift > 0 ? shift : 0),
        right_(shift < 0 ? -shift : 0),
        nudge_(hn::Set(
            Wide(), (int64_t{1} << 30) + (right_ > 0 ? int64_t{1} << (30 + right_) : int64_t{0}))),
        sign_(hn::Set(Wide(), right_ > 0 && ties == kTiesAway ? int64_t{1} << 31 : 0)) {}

  HWY_INLINE V operator()(V x) const {
    const D d;
    if (left_ > 0) x = hn::ShiftLeftSame(x, left_);
    const auto x_even = hn::BitCast(Wide(), x);
    const auto x_odd = hn::BitCast(Wide(), hn::ShiftRight<32>(hn::BitCast(UnsignedWide(), x)));
    auto even = Sum(hn::MulEven(x, multiplier_), x_even);
    auto odd = Sum(hn::MulEven(hn::BitCast(d, x_odd), multiplier_), x_odd);
    if (right_ == 0) {
      even = hn::Add(even, even);
      odd = hn::Add(odd, odd);
    }
    const auto high_of_even = hn::ShiftRight<32>(hn::BitCast(UnsignedWide(), even));
    const auto high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, high_of_even));
    return right_ > 1 ? hn::ShiftRightSame(high, right_ - 1) : high;
  }

 private:
  using Wide = hn::RepartitionToWide<D>;
  using UnsignedWide = hn::RebindToUnsigned<Wide>;
  using WideVec = hn::Vec<Wide>;

  HWY_INLINE WideVec Sum(WideVec product, WideVec x) const {
    return hn::Sub(hn::Add(product, nudge_), hn::And(x, sign_));
  }

  V multiplier_;
  int left_, right_;
  WideVec nudge_, sign_;
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
