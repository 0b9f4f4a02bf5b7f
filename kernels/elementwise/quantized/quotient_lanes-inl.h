// Quotients of quantized bytes in every lane.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ELEMENTWISE_QUOTIENT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ELEMENTWISE_QUOTIENT_LANES_INL_H_
#undef FUSELITE_KERNELS_ELEMENTWISE_QUOTIENT_LANES_INL_H_
#else
#define FUSELITE_KERNELS_ELEMENTWISE_QUOTIENT_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/quantized/quantized_rows.h"
#include "kernels/simd.h"
#include "kernels/simd_math/fixed_point-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// QuantizedQuotient, step by step.
class QuotientLanes {
 public:
  struct Divisor {
    IntVec inverse, right, sign;  // the sign: -1 or 0
  };

  HWY_INLINE explicit QuotientLanes(const TabledQuotient& f)
      : divisors_(f.divisors.get()),
        x_zero_(hn::Set(IntTag(), f.exact.x_zero)),
        y_zero_(hn::Set(IntTag(), f.exact.y_zero)),
        multiplier_(hn::Set(IntTag(), f.exact.scale.multiplier)),
        zero_(hn::Set(IntTag(), f.exact.zero)),
        min_(f.min),
        max_(f.max) {}
  HWY_INLINE IntVec x(IntVec v) const { return hn::Sub(v, x_zero_); }
  HWY_INLINE Divisor y(IntVec v) const {
    const IntTag d;
    return {hn::GatherIndex(d, divisors_->inverse.data(), v),
            hn::GatherIndex(d, divisors_->right.data(), v),
            hn::BroadcastSignBit(hn::Sub(v, y_zero_))};
  }
  HWY_INLINE IntVec operator()(IntVec difference, const Divisor& y) const {
    const auto dividend = hn::Sub(hn::Xor(difference, y.sign), y.sign);
    const auto headroom = Headroom(dividend);
    const auto quotient = FixedMul(hn::Shl(dividend, headroom), y.inverse);
    const auto scaled = FixedMul(quotient, multiplier_);
    return ClampInt(hn::Add(Shifted(scaled, hn::Add(y.right, headroom)), zero_), min_, max_);
  }

 private:
  // The bits above the highest one that differs from the sign, but for one: as the float of so
  // small a number, which is exact, tells.
  HWY_INLINE static IntVec Headroom(IntVec v) {
    const IntTag d;
    const auto magnitude = hn::Xor(v, hn::BroadcastSignBit(v));
    const auto exponent =
        hn::ShiftRight<23>(hn::BitCast(d, hn::ConvertTo(hn::ScalableTag<float>(), magnitude)));
    return hn::Min(hn::Sub(hn::Set(d, 127 + 30), exponent), hn::Set(d, 31));
  }
  HWY_INLINE static IntVec Shifted(IntVec v, IntVec right) {
    const IntTag d;
    const auto most = hn::Set(d, 31), count = hn::And(right, most);
    const auto is_other = hn::Ne(right, count);
    const auto other = hn::Add(hn::Add(hn::Shr(v, count), hn::BroadcastSignBit(v)), hn::Set(d, 1));
    return hn::IfThenElse(is_other, other, FixedDivide(v, count));
  }

  const TabledQuotient::Divisors* divisors_;
  IntVec x_zero_, y_zero_, multiplier_, zero_;
  int32_t min_, max_;
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
