// The functions of fixed_point16.h on vectors, to the bit. What the scalar ones call Multiply is
// MulFixedPoint15: none of the products here is of two smallest numbers, where alone they differ.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_LSTM_FIXED_POINT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_LSTM_FIXED_POINT16_INL_H_
#undef FUSELITE_KERNELS_LSTM_FIXED_POINT16_INL_H_
#else
#define FUSELITE_KERNELS_LSTM_FIXED_POINT16_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/lstm/fixed_point16.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ShortTag = hn::ScalableTag<int16_t>;
using ShortVec = hn::Vec<ShortTag>;

HWY_INLINE ShortVec Shorts(int value) { return hn::Set(ShortTag(), static_cast<int16_t>(value)); }

// x / 2^kExponent, rounded half away from zero. Precondition: 0 <= x <= 32767 - 2^(kExponent - 1).
template <int kExponent>
HWY_INLINE ShortVec RoundingShiftRight(ShortVec x) {
  return hn::ShiftRight<kExponent>(hn::Add(x, Shorts(1 << (kExponent - 1))));
}

// The same of any x > -32768, for kExponent > 1: a negative one is lowered by 1, so that its ties
// fall, and halved first, so that nothing overflows.
template <int kExponent>
HWY_INLINE ShortVec RoundingDivideShorts(ShortVec x) {
  const ShortVec half = hn::ShiftRight<1>(hn::Add(x, hn::ShiftRight<15>(x)));
  return hn::ShiftRight<kExponent - 1>(hn::Add(half, Shorts(1 << (kExponent - 2))));
}

// Of the two values that it rounds one is a square, the other a square and at most a 24th of it.
HWY_INLINE ShortVec ExpWithinQuarterVec(ShortVec a_q0) {
  const ShortVec center = Shorts(ShortConstant(kExpMinusEighth));
  const ShortVec x = hn::Add(a_q0, Shorts(1 << 12));
  const ShortVec x2 = hn::MulFixedPoint15(x, x);
  const ShortVec x3 = hn::MulFixedPoint15(x2, x);
  const ShortVec x4 = hn::MulFixedPoint15(x2, x2);
  const ShortVec third = Shorts(ShortConstant(kThird));
  const ShortVec sum =
      hn::Add(hn::MulFixedPoint15(hn::Add(RoundingShiftRight<2>(x4), x3), third), x2);
  const ShortVec series = hn::Add(x, RoundingShiftRight<1>(sum));
  return hn::SaturatedAdd(center, hn::MulFixedPoint15(center, series));
}

// exp(-2^kExponent) times `result` where `rest` has that bit.
template <int kExponent>
HWY_INLINE ShortVec TimesExpPower(ShortVec result, ShortVec rest, int integer_bits) {
  if (kExponent >= integer_bits) return result;
  constexpr int16_t kPower = ShortConstant(kExpPowers[kExponent + 2]);
  const ShortVec bit = Shorts(1 << (15 - integer_bits + kExponent));
  const ShortVec product = hn::MulFixedPoint15(result, Shorts(kPower));
  return hn::IfThenElse(hn::TestBit(rest, bit), product, result);
}

// Precondition: a < 0; of zero the result is any.
HWY_INLINE ShortVec ExpNegativeVec(ShortVec a, int integer_bits) {
  const ShortTag d;
  const int fraction_bits = 15 - integer_bits;
  const int quarter = 1 << (fraction_bits - 2);
  const ShortVec within = hn::Sub(hn::And(a, Shorts(quarter - 1)), Shorts(quarter));
  // It is at least -2^13: nothing saturates.
  ShortVec result = ExpWithinQuarterVec(hn::ShiftLeftSame(within, integer_bits));
  const ShortVec rest = hn::Sub(within, a);
  result = TimesExpPower<-2>(result, rest, integer_bits);
  result = TimesExpPower<-1>(result, rest, integer_bits);
  result = TimesExpPower<0>(result, rest, integer_bits);
  result = TimesExpPower<1>(result, rest, integer_bits);
  result = TimesExpPower<2>(result, rest, integer_bits);
  result = TimesExpPower<3>(result, rest, integer_bits);
  result = TimesExpPower<4>(result, rest, integer_bits);
  if (integer_bits > 5) {
    const auto tiny = hn::Lt(a, Shorts(-(1 << (fraction_bits + 5))));
    result = hn::IfThenElse(tiny, hn::Zero(d), result);
  }
  return result;
}

// The error of a guess is at most 1/17, so that four times a step of Newton's method fits.
HWY_INLINE ShortVec TwoOverOnePlusVec(ShortVec a_q0) {
  const ShortVec half = hn::Add(hn::ShiftRight<1>(a_q0), Shorts(1 << 14));
  ShortVec x = hn::Add(Shorts(ShortConstant(kNewtonStart)),
                       hn::MulFixedPoint15(half, Shorts(ShortConstant(kNewtonSlope))));
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const ShortVec error = hn::Sub(Shorts(1 << 13), hn::MulFixedPoint15(half, x));
    x = hn::Add(x, hn::ShiftLeft<2>(hn::MulFixedPoint15(x, error)));
  }
  return x;
}

HWY_INLINE ShortVec LogisticQ12Vec(ShortVec x) {
  const auto zero = hn::Zero(ShortTag());
  const auto positive = hn::Gt(x, zero);
  const ShortVec negative = hn::IfThenElse(positive, hn::Sub(zero, x), x);
  const ShortVec two_over = TwoOverOnePlusVec(ExpNegativeVec(negative, 3));
  const ShortVec side = hn::SaturatedAdd(two_over, two_over);
  const ShortVec result = hn::IfThenElse(positive, side, hn::Sub(Shorts(32767), side));
  return hn::IfThenElse(hn::Eq(x, zero), Shorts(1 << 14), result);
}

HWY_INLINE ShortVec TanhFixedVec(ShortVec x, int integer_bits) {
  const auto zero = hn::Zero(ShortTag());
  const auto is_negative = hn::Lt(x, zero);
  const ShortVec negative = hn::IfThenElse(is_negative, x, hn::Sub(zero, x));
  const ShortVec two_over = TwoOverOnePlusVec(ExpNegativeVec(negative, integer_bits + 1));
  const ShortVec above = hn::Sub(two_over, Shorts(1 << 13));
  const ShortVec twice = hn::SaturatedAdd(above, above);
  const ShortVec size = hn::SaturatedAdd(twice, twice);
  const ShortVec result = hn::IfThenElse(is_negative, hn::Sub(zero, size), size);
  return hn::IfThenZeroElse(hn::Eq(x, zero), result);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
