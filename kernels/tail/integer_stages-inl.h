// The integer stages of a tail on a run of int32 values, to the bit of
// kernels/numbers/quantization.h.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_TAIL_INTEGER_STAGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_TAIL_INTEGER_STAGES_INL_H_
#undef FUSELITE_KERNELS_TAIL_INTEGER_STAGES_INL_H_
#else
#define FUSELITE_KERNELS_TAIL_INTEGER_STAGES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/simd_math-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/tail.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using IntTag = hn::ScalableTag<int32_t>;
using IntVec = hn::Vec<IntTag>;

// MultiplyByQuantizedMultiplier(x, multiplier, shift) in every lane.
//
// TFLite's two roundings in one: with p = x m and a right shift e >= 1 the result is
//   (p + 2^30 + 2^(30+e) - (x < 0 ? 2^31 : 0)) >> (31 + e),   and (p + 2^30) >> 31 for e = 0.
// 64-bit lanes have no arithmetic shift below AVX-512, so 2^63 is added before a logical one, and
// its share of the result, 2^(32-e), taken off behind it.
HWY_INLINE IntVec MultiplyByQuantizedMultiplierVec(IntVec x, IntVec multiplier, IntVec shift) {
  const IntTag d;
  const hn::RebindToUnsigned<IntTag> du;
  const hn::RepartitionToWide<decltype(du)> dw;
  const auto zero = hn::Zero(d);
  const auto right = hn::Max(hn::Neg(shift), zero);
  x = hn::BitCast(d, hn::BitCast(du, x) << hn::BitCast(du, hn::Max(shift, zero)));
  // 2^30 - (x < 0 ? 2^31 : 0) where e >= 1, and 2^31 more, so that it is not negative.
  const auto sign = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, -(1 << 30)), hn::Set(d, 1 << 30));
  const auto nudge = hn::Xor(hn::IfThenElseZero(hn::Gt(right, zero), sign), hn::Set(d, INT32_MIN));
  const auto offset = hn::Set(dw, (uint64_t{1} << 63) - (uint64_t{1} << 31));
  const auto low_half = hn::Set(dw, uint64_t{0xFFFFFFFF});
  const auto round = [&](auto product, auto e, auto n) HWY_ATTR {
    const auto half = hn::Set(dw, uint64_t{1} << 30) << e;
    const auto sum = hn::Add(hn::Add(hn::BitCast(dw, product), half), hn::Add(n, offset));
    const auto shifted = sum >> hn::Add(e, hn::Set(dw, uint64_t{31}));
    return hn::Sub(shifted, hn::Set(dw, uint64_t{1} << 32) >> e);
  };
  const auto odd = [&](IntVec v) HWY_ATTR { return hn::ShiftRight<32>(hn::BitCast(dw, v)); };
  const auto even = [&](IntVec v) HWY_ATTR { return hn::And(hn::BitCast(dw, v), low_half); };
  const auto product_odd = hn::MulEven(hn::BitCast(d, odd(x)), hn::BitCast(d, odd(multiplier)));
  const auto result_even = round(hn::MulEven(x, multiplier), even(right), even(nudge));
  const auto result_odd = round(product_odd, odd(right), odd(nudge));
  return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(result_odd)), hn::BitCast(d, result_even));
}

HWY_INLINE IntVec ClampInt(IntVec x, int32_t low, int32_t high) {
  const IntTag d;
  return hn::Min(hn::Max(x, hn::Set(d, low)), hn::Set(d, high));
}

// Widens `n` lanes of T at `p` to int32; fewer than a vector's where n < Lanes.
template <class T>
HWY_INLINE IntVec LoadInt(const T* p, size_t n) {
  const IntTag d;
  const hn::Rebind<T, IntTag> narrow;
  if constexpr (sizeof(T) == 4) {
    return LoadUpTo(d, p, n);
  } else {
    return hn::PromoteTo(d, LoadUpTo(narrow, p, n));
  }
}

// Narrows to T, saturating.
template <class T>
HWY_INLINE void StoreInt(IntVec v, T* p, size_t n) {
  const hn::Rebind<T, IntTag> narrow;
  if constexpr (sizeof(T) == 4) {
    StoreUpTo(v, narrow, p, n);
  } else {
    StoreUpTo(hn::DemoteTo(narrow, v), narrow, p, n);
  }
}

// ForVectors() for vectors of integers.
template <class F>
HWY_INLINE void ForVectors(size_t n, F f) {
  ForVectors(IntTag(), n, f);
}

// Channels begin at `channel`. In place.
HWY_INLINE void RequantizeRun(const Requantize& r, int64_t channel, const int32_t* in, int32_t* out,
                              size_t n) {
  const IntTag d;
  const auto zero_point = hn::Set(d, r.zero_point);
  const auto finish = [&](IntVec x, IntVec multiplier, IntVec shift) HWY_ATTR {
    const auto scaled = MultiplyByQuantizedMultiplierVec(x, multiplier, shift);
    return ClampInt(hn::Add(scaled, zero_point), r.min, r.max);
  };
  if (r.multipliers.size() == 1) {
    const auto multiplier = hn::Set(d, r.multipliers[0]), shift = hn::Set(d, r.shifts[0]);
    ForVectors(n, [&](size_t i, size_t count) FUSELITE_INLINED {
      StoreInt(finish(LoadInt(in + i, count), multiplier, shift), out + i, count);
    });
    return;
  }
  const int32_t* multipliers = r.multipliers.data() + channel;
  const int32_t* shifts = r.shifts.data() + channel;
  ForVectors(n, [&](size_t i, size_t count) FUSELITE_INLINED {
    const auto multiplier = LoadInt(multipliers + i, count), shift = LoadInt(shifts + i, count);
    StoreInt(finish(LoadInt(in + i, count), multiplier, shift), out + i, count);
  });
}

// Channels begin at `channel`. In place.
HWY_INLINE void RescaleRun(const TailStage& stage, int64_t channel, const int32_t* in, int32_t* out,
                           size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> narrow;
  const bool per_channel = stage.real_scales.size() > 1;
  const double* scales = stage.real_scales.data() + (per_channel ? channel : 0);
  const auto zero_point = hn::Set(d, static_cast<double>(stage.zero_point));
  const auto min = hn::Set(d, static_cast<double>(stage.min));
  const auto max = hn::Set(d, static_cast<double>(stage.max));
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = n - i < lanes ? n - i : lanes;
    const auto scale = per_channel ? LoadUpTo(d, scales + i, count) : hn::Set(d, *scales);
    const auto x = hn::Mul(hn::PromoteTo(d, LoadUpTo(narrow, in + i, count)), scale);
    // The fraction is exact, so that halves are told from what is just below.
    const auto whole = hn::Trunc(x);
    const auto away = hn::Ge(hn::Abs(hn::Sub(x, whole)), hn::Set(d, 0.5));
    const auto rounded = hn::Add(whole, hn::IfThenElseZero(away, hn::CopySign(hn::Set(d, 1.0), x)));
    const auto clamped = hn::Min(hn::Max(hn::Add(rounded, zero_point), min), max);
    StoreUpTo(hn::DemoteTo(narrow, clamped), narrow, out + i, count);
  }
}

// `y` advances by `stride` (0 or 1) per value.
template <class T>
HWY_INLINE void QuantizedAddRun(const QuantizedAdd& q, const T* y, int stride, const int32_t* in,
                                int32_t* out, size_t n) {
  const IntTag d;
  const UniformScale x_scale(q.x_multiplier, q.x_shift), y_scale(q.y_multiplier, q.y_shift),
      output_scale(q.output_multiplier, q.output_shift);
  const auto left = [&](IntVec v, int32_t offset) HWY_ATTR {
    return hn::ShiftLeftSame(hn::Add(v, hn::Set(d, offset)), q.left_shift);
  };
  ForVectors(n, [&](size_t i, size_t count) FUSELITE_INLINED {
    const auto other = stride == 0 ? hn::Set(d, static_cast<int32_t>(*y)) : LoadInt(y + i, count);
    const auto a = x_scale(left(LoadInt(in + i, count), q.x_offset));
    const auto b = y_scale(left(other, q.y_offset));
    const auto sum = q.negate_x ? hn::Sub(b, a) : q.negate_y ? hn::Sub(a, b) : hn::Add(a, b);
    const auto scaled = hn::Add(output_scale(sum), hn::Set(d, q.output_offset));
    StoreInt(ClampInt(scaled, q.min, q.max), out + i, count);
  });
}

// int32 -> float32, in place where in == out.
HWY_INLINE void DequantizeRun(const TailStage& stage, int64_t channel, const int32_t* in,
                              float* out, size_t n) {
  const hn::ScalableTag<float> d;
  const IntTag di;
  const auto zero_point = hn::Set(di, stage.zero_point);
  const bool per_channel = stage.scales.size() > 1;
  const float* scales = stage.scales.data() + (per_channel ? channel : 0);
  ForVectors(n, [&](size_t i, size_t count) FUSELITE_INLINED {
    const auto scale = per_channel ? LoadUpTo(d, scales + i, count) : hn::Set(d, *scales);
    const auto value = hn::ConvertTo(d, hn::Sub(LoadInt(in + i, count), zero_point));
    StoreUpTo(hn::Mul(scale, value), d, out + i, count);
  });
}

// Half away from zero: 0.49999997, the largest float below 1/2, carries exactly the halves over.
template <class D, class V>
HWY_INLINE V RoundHalfAway(D d, V x) {
  return hn::Trunc(hn::Add(x, hn::CopySign(hn::Set(d, 0.49999997f), x)));
}

// float32 -> int32, in place where in == out.
HWY_INLINE void QuantizeRun(const TailStage& stage, const float* in, int32_t* out, size_t n) {
  const hn::ScalableTag<float> d;
  const IntTag di;
  const auto scale = hn::Set(d, stage.scales[0]);
  const auto zero_point = hn::Set(d, static_cast<float>(stage.zero_point));
  const auto min = static_cast<float>(stage.min), max = static_cast<float>(stage.max);
  ForVectors(n, [&](size_t i, size_t count) FUSELITE_INLINED {
    const auto x = LoadUpTo(d, in + i, count);
    const auto rounded = hn::Add(RoundHalfAway(d, hn::Div(x, scale)), zero_point);
    StoreInt(hn::ConvertTo(di, AtMost(d, AtLeast(d, rounded, min), max)), out + i, count);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
