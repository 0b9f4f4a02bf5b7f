// The functions of fixed_point16.h on vectors, to the bit. What the scalar ones call Multiply is
// MulFixedPoint15: none of the products here is of two smallest numbers, where alone they differ.
#include "kernels/lstm/fixed_point16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm/fixed_point16_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ShortTag = hn::ScalableTag<int16_t>;
using ShortVec = hn::Vec<ShortTag>;

HWY_INLINE ShortVec Shorts(int value) { return hn::Set(ShortTag(), static_cast<int16_t>(value)); }

// x / 2^kExponent, rounded half away from zero.
template <int kExponent>
HWY_INLINE ShortVec RoundingShiftRight(ShortVec x) {
  constexpr int kMask = (1 << kExponent) - 1;
  const auto threshold = hn::Sub(Shorts(kMask >> 1), hn::ShiftRight<15>(x));
  const auto up = hn::VecFromMask(ShortTag(), hn::Gt(hn::And(x, Shorts(kMask)), threshold));
  return hn::Sub(hn::ShiftRight<kExponent>(x), up);
}

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

HWY_INLINE ShortVec ExpNegativeVec(ShortVec a, int integer_bits) {
  const ShortTag d;
  const int fraction_bits = 15 - integer_bits;
  const int quarter = 1 << (fraction_bits - 2);
  const ShortVec within = hn::Sub(hn::And(a, Shorts(quarter - 1)), Shorts(quarter));
  // It is at least -2^13: nothing saturates.
  ShortVec result = ExpWithinQuarterVec(hn::ShiftLeftSame(within, integer_bits));
  const ShortVec rest = hn::Sub(within, a);
  for (int e = -2; e <= 4 && e < integer_bits; ++e) {
    const ShortVec bit = Shorts(1 << (fraction_bits + e));
    const ShortVec product = hn::MulFixedPoint15(result, Shorts(ShortConstant(kExpPowers[e + 2])));
    result = hn::IfThenElse(hn::TestBit(rest, bit), product, result);
  }
  if (integer_bits > 5) {
    const auto tiny = hn::Lt(a, Shorts(-(1 << (fraction_bits + 5))));
    result = hn::IfThenElse(tiny, hn::Zero(d), result);
  }
  return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), Shorts(32767), result);
}

HWY_INLINE ShortVec TwoOverOnePlusVec(ShortVec a_q0) {
  const ShortVec half = hn::Add(hn::ShiftRight<1>(a_q0), Shorts(1 << 14));
  ShortVec x = hn::Add(Shorts(ShortConstant(kNewtonStart)),
                       hn::MulFixedPoint15(half, Shorts(ShortConstant(kNewtonSlope))));
  for (int i = 0; i < 3; ++i) {
    const ShortVec error = hn::Sub(Shorts(1 << 13), hn::MulFixedPoint15(half, x));
    const ShortVec step = hn::MulFixedPoint15(x, error);
    const ShortVec twice = hn::SaturatedAdd(step, step);
    x = hn::Add(x, hn::SaturatedAdd(twice, twice));
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

template <class F>
HWY_INLINE void ForShorts(int16_t* values, int64_t n, F f) {
  const ShortTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto left = static_cast<size_t>(n - i);
    StoreUpTo(f(LoadUpTo(d, values + i, left)), d, values + i, left);
  }
}

void LogisticRow(int16_t* values, int64_t n) {
  ForShorts(values, n, [](ShortVec x) HWY_ATTR { return LogisticQ12Vec(x); });
}

void TanhRow(int16_t* values, int64_t n, int integer_bits) {
  ForShorts(values, n, [=](ShortVec x) HWY_ATTR { return TanhFixedVec(x, integer_bits); });
}

constexpr FixedPoint16Rows kRows = {.logistic_q12 = LogisticRow, .tanh_fixed = TanhRow};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const FixedPoint16Rows* FindFixedPoint16Rows(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kRows);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
