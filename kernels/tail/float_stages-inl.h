// The float stages of a tail on a run of values: UnaryRun and BinaryRun.
//
// Every lane computes the same operations whatever its place in a vector, so a value's bits do not
// depend on how a row is split into runs.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_TAIL_FLOAT_STAGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_TAIL_FLOAT_STAGES_INL_H_
#undef FUSELITE_KERNELS_TAIL_FLOAT_STAGES_INL_H_
#else
#define FUSELITE_KERNELS_TAIL_FLOAT_STAGES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/simd_math-inl.h"
#include "kernels/simd_math/sines-inl.h"
#include "kernels/tail/elementwise_kinds.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// out[i] = f(in[i]); in == out is allowed.
template <class F>
HWY_INLINE void MapRun(const float* in, float* out, size_t n, F f) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, in + i)), d, out + i);
  if (i < n) StorePartial(f(LoadPartial(d, in + i, n - i)), d, out + i, n - i);
}

// out[i] = f(x[i], y[i * stride]), stride 0 or 1; x == out is allowed.
template <class F>
HWY_INLINE void ZipRun(const float* x, const float* y, int stride, float* out, size_t n, F f) {
  const FloatTag d;
  if (stride == 0) {
    const FloatVec all = hn::Set(d, *y);
    return MapRun(x, out, n, [&](FloatVec v) HWY_ATTR { return f(v, all); });
  }
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
  }
  if (i == n) return;
  const FloatVec last = f(LoadPartial(d, x + i, n - i), LoadPartial(d, y + i, n - i));
  StorePartial(last, d, out + i, n - i);
}

HWY_INLINE FloatVec ClampVec(FloatVec x, float low, float high) {
  const FloatTag d;
  return AtMost(d, AtLeast(d, x, low), high);
}

HWY_INLINE FloatVec NegativePart(FloatVec x, FloatVec if_negative) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(FloatTag())), if_negative, x);
}

// x/2 (1 + y)
HWY_INLINE FloatVec HalfTimesOnePlus(FloatVec x, FloatVec y) {
  const FloatTag d;
  return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Add(hn::Set(d, 1.0f), y));
}

HWY_INLINE FloatVec GeluVec(FloatVec x) {
  const FloatTag d;
  return HalfTimesOnePlus(x, VecErf(d, hn::Mul(x, hn::Set(d, 0.70710678f))));
}

HWY_INLINE FloatVec GeluTanhVec(FloatVec x) {
  const FloatTag d;
  const FloatVec cube = hn::Mul(hn::Mul(hn::Mul(hn::Set(d, 0.044715f), x), x), x);
  return HalfTimesOnePlus(x, VecTanh(d, hn::Mul(hn::Set(d, 0.79788456f), hn::Add(x, cube))));
}

// Multiplies by 1/6 where the reference divides by 6: one unit in the last place, and four times
// the throughput.
HWY_INLINE FloatVec HardSwishVec(FloatVec x) {
  const FloatTag d;
  const FloatVec gate = ClampVec(hn::Add(x, hn::Set(d, 3.0f)), 0.0f, 6.0f);
  return hn::Mul(hn::Mul(x, gate), hn::Set(d, 1.0f / 6.0f));
}

HWY_INLINE FloatVec SignVec(FloatVec x) {
  const FloatTag d;
  const FloatVec one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  const FloatVec sign =
      hn::Sub(hn::IfThenElseZero(hn::Gt(x, zero), one), hn::IfThenElseZero(hn::Lt(x, zero), one));
  return hn::IfThenElse(hn::IsNaN(x), x, sign);
}

// Multiplication and addition rounded one by one, as separate operators round them.
HWY_INLINE FloatVec AffineVec(FloatVec x, float a, float b) {
  const FloatTag d;
  return hn::Add(hn::Mul(hn::Set(d, a), x), hn::Set(d, b));
}

// out[i] = kind(in[i]) with the parameters a and b (UnaryKind). in == out is allowed.
HWY_INLINE void UnaryRun(UnaryKind kind, float a, float b, const float* in, float* out, size_t n) {
  using V = FloatVec;
  const FloatTag d;
  const auto map = [&](auto f) HWY_ATTR { MapRun(in, out, n, f); };
  switch (kind) {
    case UnaryKind::kIdentity: return map([](V x) HWY_ATTR { return x; });
    case UnaryKind::kClamp: return map([=](V x) HWY_ATTR { return ClampVec(x, a, b); });
    case UnaryKind::kLeakyRelu:
      return map([=](V x) HWY_ATTR { return NegativePart(x, hn::Mul(x, hn::Set(d, a))); });
    case UnaryKind::kElu:
      return map([=](V x) HWY_ATTR {
        return NegativePart(x, VecExpm1NonPositive(d, AtMost(d, x, 0.0f)));
      });
    case UnaryKind::kGelu: return map([](V x) HWY_ATTR { return GeluVec(x); });
    case UnaryKind::kGeluTanh: return map([](V x) HWY_ATTR { return GeluTanhVec(x); });
    case UnaryKind::kHardSwish: return map([](V x) HWY_ATTR { return HardSwishVec(x); });
    case UnaryKind::kHardSigmoid:
      return map([=](V x) HWY_ATTR { return ClampVec(AffineVec(x, a, b), 0.0f, 1.0f); });
    case UnaryKind::kLogistic: return map([=](V x) HWY_ATTR { return VecLogistic(d, x); });
    case UnaryKind::kSilu: return map([=](V x) HWY_ATTR { return hn::Mul(x, VecLogistic(d, x)); });
    case UnaryKind::kTanh: return map([=](V x) HWY_ATTR { return VecTanh(d, x); });
    case UnaryKind::kExp: return map([=](V x) HWY_ATTR { return VecExp(d, x); });
    case UnaryKind::kLog: return map([=](V x) HWY_ATTR { return VecLog(d, x); });
    case UnaryKind::kSqrt: return map([](V x) HWY_ATTR { return hn::Sqrt(x); });
    case UnaryKind::kRsqrt:
      return map([=](V x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)); });
    case UnaryKind::kAbs: return map([](V x) HWY_ATTR { return hn::Abs(x); });
    case UnaryKind::kNeg: return map([](V x) HWY_ATTR { return hn::Neg(x); });
    case UnaryKind::kFloor: return map([](V x) HWY_ATTR { return hn::Floor(x); });
    case UnaryKind::kCeil: return map([](V x) HWY_ATTR { return hn::Ceil(x); });
    case UnaryKind::kRound: return map([](V x) HWY_ATTR { return hn::Round(x); });
    case UnaryKind::kSquare: return map([](V x) HWY_ATTR { return hn::Mul(x, x); });
    case UnaryKind::kSin: return SinRun(d, in, out, n);
    case UnaryKind::kCos: return CosRun(d, in, out, n);
    case UnaryKind::kSign: return map([](V x) HWY_ATTR { return SignVec(x); });
    case UnaryKind::kErf: return map([=](V x) HWY_ATTR { return VecErf(d, x); });
    case UnaryKind::kSoftsign:
      return map([=](V x) HWY_ATTR { return hn::Div(x, hn::Add(hn::Abs(x), hn::Set(d, 1.0f))); });
    case UnaryKind::kAffine: return map([=](V x) HWY_ATTR { return AffineVec(x, a, b); });
  }
}

// out[i] = kind(x[i], y[i * stride]), stride 0 or 1. x == out is allowed.
HWY_INLINE void BinaryRun(BinaryKind kind, const float* x, const float* y, int stride, float* out,
                          size_t n) {
  using V = FloatVec;
  const auto zip = [&](auto f) HWY_ATTR { ZipRun(x, y, stride, out, n, f); };
  switch (kind) {
    case BinaryKind::kAdd: return zip([](V v, V w) HWY_ATTR { return hn::Add(v, w); });
    case BinaryKind::kSub: return zip([](V v, V w) HWY_ATTR { return hn::Sub(v, w); });
    case BinaryKind::kReverseSub: return zip([](V v, V w) HWY_ATTR { return hn::Sub(w, v); });
    case BinaryKind::kMul: return zip([](V v, V w) HWY_ATTR { return hn::Mul(v, w); });
    case BinaryKind::kDiv: return zip([](V v, V w) HWY_ATTR { return hn::Div(v, w); });
    case BinaryKind::kReverseDiv: return zip([](V v, V w) HWY_ATTR { return hn::Div(w, v); });
    case BinaryKind::kMaximum: return zip([](V v, V w) HWY_ATTR { return StdMax(w, v); });
    case BinaryKind::kReverseMaximum: return zip([](V v, V w) HWY_ATTR { return StdMax(v, w); });
    case BinaryKind::kMinimum: return zip([](V v, V w) HWY_ATTR { return StdMin(w, v); });
    case BinaryKind::kReverseMinimum: return zip([](V v, V w) HWY_ATTR { return StdMin(v, w); });
    case BinaryKind::kSquaredDifference:
      return zip([](V v, V w) HWY_ATTR {
        const V difference = hn::Sub(v, w);
        return hn::Mul(difference, difference);
      });
    case BinaryKind::kPrelu:
      return zip([](V v, V w) HWY_ATTR { return NegativePart(v, hn::Mul(v, w)); });
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
