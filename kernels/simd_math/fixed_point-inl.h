// Functions of kernels/numbers/fixed_point.h in every lane, to the bit.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_FIXED_POINT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_FIXED_POINT_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_FIXED_POINT_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_FIXED_POINT_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/numbers/fixed_point.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FixedTag32 = hn::ScalableTag<int32_t>;
using FixedVec = hn::Vec<FixedTag32>;

// SaturatingRoundingDoublingHighMul, (a b + 2^30) >> 31. Precondition: a and b are not both the
// smallest number.
HWY_INLINE FixedVec FixedMul(FixedVec a, FixedVec b) {
  const FixedTag32 d;
  const hn::RepartitionToWide<FixedTag32> dw;
  const hn::RebindToUnsigned<decltype(dw)> du;
  const auto odd = [&](FixedVec v)
                       HWY_ATTR { return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(du, v))); };
  const auto rounded = [&](auto product) HWY_ATTR {
    return hn::ShiftLeft<1>(hn::Add(product, hn::Set(dw, int64_t{1} << 30)));
  };
  const auto high_of_even =
      hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(du, rounded(hn::MulEven(a, b)))));
  return hn::OddEven(hn::BitCast(d, rounded(hn::MulEven(odd(a), odd(b)))), high_of_even);
}

// RoundingDivideByPowerOfTwo by kBits, half away from zero.
template <int kBits>
HWY_INLINE FixedVec FixedDivide(FixedVec x) {
  const FixedTag32 d;
  constexpr int32_t kMask = (1 << kBits) - 1;
  const auto negative = hn::BroadcastSignBit(x);  // -1 or 0
  const auto threshold = hn::Sub(hn::Set(d, kMask >> 1), negative);
  const auto up = hn::Gt(hn::And(x, hn::Set(d, kMask)), threshold);
  return hn::Sub(hn::ShiftRight<kBits>(x), hn::VecFromMask(d, up));
}

// RoundingDivideByPowerOfTwo of each lane by its own `right` in [0, 31].
HWY_INLINE FixedVec FixedDivide(FixedVec x, FixedVec right) {
  const FixedTag32 d;
  const auto mask = hn::Sub(hn::Shl(hn::Set(d, 1), right), hn::Set(d, 1));
  const auto half = hn::ShiftRight<1>(hn::BitCast(hn::RebindToUnsigned<FixedTag32>(), mask));
  const auto threshold = hn::Sub(hn::BitCast(d, half), hn::BroadcastSignBit(x));
  const auto up = hn::Gt(hn::And(x, mask), threshold);
  return hn::Sub(hn::Shr(x, right), hn::VecFromMask(d, up));
}

// (a + b) / 2 of what is not negative, halves up.
HWY_INLINE FixedVec FixedHalfSum(FixedVec a, FixedVec b) {
  return hn::Sub(hn::Or(a, b), hn::ShiftRight<1>(hn::Xor(a, b)));
}

// FixedOneOverOnePlus.
HWY_INLINE FixedVec FixedOneOverOnePlusVec(FixedVec x) {
  const FixedTag32 d;
  constexpr int32_t kOne = 1 << 29, k48Over17 = 1515870810, kMinus32Over17 = -1010580540;
  const auto half = FixedHalfSum(x, hn::Set(d, INT32_MAX));
  auto y = hn::Add(hn::Set(d, k48Over17), FixedMul(half, hn::Set(d, kMinus32Over17)));
  for (int i = 0; i < 3; ++i) {
    const auto error = hn::Sub(hn::Set(d, kOne), FixedMul(half, y));
    y = hn::Add(y, hn::ShiftLeft<2>(FixedMul(y, error)));
  }
  const auto one = hn::Gt(y, hn::Set(d, (1 << 30) - 1));
  return hn::IfThenElse(one, hn::Set(d, INT32_MAX), hn::ShiftLeft<1>(y));
}

// FixedLogOfQ12 of what SplitLogOfQ12 has split.
HWY_INLINE FixedVec FixedLogVec(FixedVec r, FixedVec power) {
  using namespace fixed_log;
  const FixedTag32 d;
  const auto middle = hn::Set(d, kFourthRootOfHalf);
  const auto p = FixedHalfSum(r, middle);
  const auto q = hn::ShiftLeft<1>(hn::Sub(r, middle));
  const auto q2 = FixedMul(q, q);
  const auto numerator = hn::Add(FixedMul(q, r), FixedMul(FixedMul(q, q2), hn::Set(d, kAlphaN)));
  const auto factor = hn::Add(hn::Add(hn::Set(d, kAlphaI), q), FixedMul(hn::Set(d, kAlphaD), q2));
  const auto denominator = hn::Add(FixedMul(p, factor), FixedMul(hn::Set(d, kAlphaF), q));
  const auto quotient =
      FixedMul(FixedDivide<kPowerBits>(numerator), FixedOneOverOnePlusVec(denominator));
  return hn::ShiftLeft<1>(hn::Add(FixedMul(power, hn::Set(d, kLog2)), quotient));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
