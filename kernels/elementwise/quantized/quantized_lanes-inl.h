// Quantized functions of two values in every lane.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ELEMENTWISE_QUANTIZED_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ELEMENTWISE_QUANTIZED_LANES_INL_H_
#undef FUSELITE_KERNELS_ELEMENTWISE_QUANTIZED_LANES_INL_H_
#else
#define FUSELITE_KERNELS_ELEMENTWISE_QUANTIZED_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/quantized/quantized_rows.h"
#include "kernels/simd.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RealTag = hn::ScalableTag<float>;
using RealVec = hn::Vec<RealTag>;

// A function has x() and y() for what it makes of each operand, once for a whole row where that is
// one value, and the call that joins them. Of the result the low 16 bits of each lane count; they
// are clamped to [min, max] afterwards.

// (v + offset) 2^left_shift by a multiplier, as an operand of QuantizedAdd. A multiplier of 1/2,
// that of the operand with the larger scale, is a shift less.
class OperandScale {
 public:
  HWY_INLINE OperandScale(int32_t offset, int left_shift, int32_t multiplier, int32_t shift)
      : offset_(hn::Set(IntTag(), offset)),
        exact_(multiplier == 1 << 30 && shift <= 0 && left_shift - 1 + shift >= 0),
        left_(exact_ ? left_shift - 1 + shift : left_shift),
        scale_(multiplier, shift) {}

  HWY_INLINE IntVec operator()(IntVec v) const {
    const auto shifted = hn::ShiftLeftSame(hn::Add(v, offset_), left_);
    return exact_ ? shifted : scale_(shifted);
  }
  bool is_shift() const { return exact_; }
  int left() const { return left_; }

 private:
  IntVec offset_;
  bool exact_;
  int left_;
  UniformScale scale_;
};

// An OperandScale where that is known to be a shift.
class OperandShift {
 public:
  HWY_INLINE OperandShift(int32_t offset, int left)
      : offset_(hn::Set(IntTag(), offset)), left_(left) {}
  HWY_INLINE IntVec operator()(IntVec v) const {
    return hn::ShiftLeftSame(hn::Add(v, offset_), left_);
  }

 private:
  IntVec offset_;
  int left_;
};

// Scales to the output and clamps, since the result may need all 32 bits.
class OutputScale {
 public:
  HWY_INLINE OutputScale(FixedPoint scale, int32_t zero, int32_t min, int32_t max)
      : scale_(scale.multiplier, scale.shift),
        zero_(hn::Set(IntTag(), zero)),
        min_(min),
        max_(max) {}
  HWY_INLINE IntVec operator()(IntVec v) const {
    return ClampInt(hn::Add(scale_(v), zero_), min_, max_);
  }

 private:
  UniformScale scale_;
  IntVec zero_;
  int32_t min_, max_;
};

struct SumLanes {
  OperandScale x_scale, y_scale;
  OutputScale output;
  bool subtract;

  HWY_INLINE explicit SumLanes(const QuantizedSum& f)
      : x_scale(f.q.x_offset, f.q.left_shift, f.q.x_multiplier, f.q.x_shift),
        y_scale(f.q.y_offset, f.q.left_shift, f.q.y_multiplier, f.q.y_shift),
        output({f.q.output_multiplier, f.q.output_shift}, f.q.output_offset, f.q.min, f.q.max),
        subtract(f.q.negate_y) {}
  HWY_INLINE IntVec x(IntVec v) const { return x_scale(v); }
  HWY_INLINE IntVec y(IntVec v) const { return y_scale(v); }
  HWY_INLINE IntVec operator()(IntVec a, IntVec b) const {
    return output(subtract ? hn::Sub(a, b) : hn::Add(a, b));
  }
};

struct ProductLanes {
  IntVec x_zero, y_zero;
  OutputScale output;

  HWY_INLINE explicit ProductLanes(const QuantizedProduct& f)
      : x_zero(hn::Set(IntTag(), f.x_zero)),
        y_zero(hn::Set(IntTag(), f.y_zero)),
        output(f.scale, f.zero, f.min, f.max) {}
  HWY_INLINE IntVec x(IntVec v) const { return hn::Sub(v, x_zero); }
  HWY_INLINE IntVec y(IntVec v) const { return hn::Sub(v, y_zero); }
  HWY_INLINE IntVec operator()(IntVec a, IntVec b) const { return output(hn::Mul(a, b)); }
};

struct PreluLanes {
  IntVec x_zero, y_zero;
  OutputScale identity, product;

  HWY_INLINE explicit PreluLanes(const QuantizedPrelu& f)
      : x_zero(hn::Set(IntTag(), f.x_zero)),
        y_zero(hn::Set(IntTag(), f.y_zero)),
        identity(f.identity, f.zero, f.min, f.max),
        product(f.product, f.zero, f.min, f.max) {}
  HWY_INLINE IntVec x(IntVec v) const { return hn::Sub(v, x_zero); }
  HWY_INLINE IntVec y(IntVec v) const { return hn::Sub(v, y_zero); }
  HWY_INLINE IntVec operator()(IntVec a, IntVec b) const {
    const auto negative = hn::Lt(a, hn::Zero(IntTag()));
    return hn::IfThenElse(negative, product(hn::Mul(a, b)), identity(a));
  }
};

struct SquaredDifferenceLanes {
  OperandScale x_scale, y_scale;
  OutputScale output;

  HWY_INLINE explicit SquaredDifferenceLanes(const QuantizedSquaredDifference& f)
      : x_scale(f.sum.q.x_offset, f.sum.q.left_shift, f.sum.q.x_multiplier, f.sum.q.x_shift),
        y_scale(f.sum.q.y_offset, f.sum.q.left_shift, f.sum.q.y_multiplier, f.sum.q.y_shift),
        output({f.sum.q.output_multiplier, f.sum.q.output_shift}, f.sum.q.output_offset,
               f.sum.q.min, f.sum.q.max) {}
  HWY_INLINE IntVec x(IntVec v) const { return x_scale(v); }
  HWY_INLINE IntVec y(IntVec v) const { return y_scale(v); }
  HWY_INLINE IntVec operator()(IntVec a, IntVec b) const {
    const auto difference = hn::Sub(a, b);
    return output(hn::Mul(difference, difference));
  }
};

// Adding 1.5 2^23 rounds a float to the integer in its low bits, halves to even; an integer up to
// 2^21 is added along with it.
constexpr float kRounding = 12582912.0f;

HWY_INLINE RealVec ToReal(IntVec v) { return hn::ConvertTo(RealTag(), v); }
HWY_INLINE IntVec RoundedBits(RealVec v) { return hn::BitCast(IntTag(), v); }

struct RoundedSumLanes {
  IntVec x_zero, y_zero;
  RealVec x_scale, y_scale, addend, rounding;

  HWY_INLINE explicit RoundedSumLanes(const RoundedSum& f)
      : x_zero(hn::Set(IntTag(), f.x_zero)),
        y_zero(hn::Set(IntTag(), f.y_zero)),
        x_scale(hn::Set(RealTag(), f.x_scale)),
        y_scale(hn::Set(RealTag(), f.y_scale)),
        addend(hn::Set(RealTag(), f.addend)),
        rounding(hn::Set(RealTag(), kRounding + static_cast<float>(f.zero))) {}
  HWY_INLINE RealVec x(IntVec v) const {
    return hn::MulAdd(ToReal(hn::Sub(v, x_zero)), x_scale, addend);
  }
  HWY_INLINE RealVec y(IntVec v) const { return ToReal(hn::Sub(v, y_zero)); }
  HWY_INLINE IntVec operator()(RealVec a, RealVec b) const {
    return RoundedBits(hn::Add(hn::MulAdd(b, y_scale, a), rounding));
  }
};

template <class XScale>
struct RoundedSquaredDifferenceLanes {
  XScale x_scale;
  OperandScale y_scale;
  RealVec scale, rounding;

  HWY_INLINE RoundedSquaredDifferenceLanes(const RoundedSquaredDifference& f, const XScale& x)
      : x_scale(x),
        y_scale(SquaredDifferenceLanes(f.exact).y_scale),
        scale(hn::Set(RealTag(), f.scale)),
        rounding(hn::Set(RealTag(), kRounding + static_cast<float>(f.zero))) {}
  HWY_INLINE IntVec x(IntVec v) const { return x_scale(v); }
  HWY_INLINE IntVec y(IntVec v) const { return y_scale(v); }
  HWY_INLINE IntVec operator()(IntVec a, IntVec b) const {
    const auto difference = ToReal(hn::Sub(a, b));
    return RoundedBits(hn::MulAdd(hn::Mul(difference, scale), difference, rounding));
  }
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
