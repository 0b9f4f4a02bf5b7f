// Transcendental functions on float32 vectors, within a few units in the last place of the exact
// value over the whole range; NaN and infinities give what <cmath> gives.
//
// The coefficients are minimax fits of their own, by iteratively reweighted least squares.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_SIMD_MATH_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_SIMD_MATH_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_SIMD_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A NaN in `x` stays.
template <class D, class V>
HWY_INLINE V AtLeast(D d, V x, float low) {
  return StdMax(x, hn::Set(d, low));
}
template <class D, class V>
HWY_INLINE V AtMost(D d, V x, float high) {
  return StdMin(x, hn::Set(d, high));
}

// c[0] + c[1] x + ... + c[kSize - 1] x^(kSize - 1), by Horner's rule. A loop might stay one.
template <size_t kFirst = 0, class D, class V, class T, size_t kSize>
HWY_INLINE V Polynomial(D d, V x, const T (&c)[kSize]) {
  const V first = hn::Set(d, c[kFirst]);
  if constexpr (kFirst + 1 == kSize) {
    return first;
  } else {
    return hn::MulAdd(Polynomial<kFirst + 1>(d, x, c), x, first);
  }
}

// exp(r) - 1 for |r| <= ln 2 / 2.
template <class D, class V>
HWY_INLINE V Expm1OfFraction(D d, V r) {
  // (exp(r) - 1 - r) / r^2, relative error of the exponential 3.1e-9.
  constexpr float kTail[] = {0.49999994f, 0.16666521f, 0.04166839f, 0.0083687110f, 0.0013814610f};
  return hn::MulAdd(hn::Mul(r, r), Polynomial(d, r, kTail), r);
}

// x = q ln 2 + r with |r| <= ln 2 / 2, and expm1(r). Precondition: |x| < 2^16, or NaN.
template <class D, class V>
struct ExpParts {
  hn::Vec<hn::Rebind<int32_t, D>> q;
  V whole;  // q
  V expm1_r;

  ExpParts(D d, V x) {
    // The high part of ln 2 has 9 bits, so that q * high is exact without FMA too.
    q = NearestInRange(hn::Mul(x, hn::Set(d, 1.44269504f)));
    whole = hn::ConvertTo(d, q);
    V r = hn::NegMulAdd(whole, hn::Set(d, 0.693359375f), x);
    r = hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4f), r);
    expm1_r = Expm1OfFraction(d, r);
  }
};

// 2^q. Precondition: -127 < q < 128.
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI q) {
  const hn::Rebind<int32_t, D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(q, hn::Set(di, 127))));
}

// x 2^q, rounded once, whether 2^q is a normal number or not, for |q| <= 150 and x in [1/2, 2].
// `whole`: q.
template <class D, class V, class VI>
HWY_INLINE V TimesPowerOfTwo(D d, V x, VI q, V /*whole*/) {
  const auto half = hn::ShiftRight<1>(q);
  return hn::Mul(hn::Mul(x, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(q, half)));
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
template <class D>
HWY_INLINE hn::Vec512<float> TimesPowerOfTwo(D /*d*/, hn::Vec512<float> x,
                                             hn::Vec512<int32_t> /*q*/, hn::Vec512<float> whole) {
  return hn::Vec512<float>{_mm512_scalef_ps(x.raw, whole.raw)};
}
#endif

template <class D, class V>
HWY_INLINE V VecExp(D d, V x) {
  // Outside of these bounds the result is 0 or infinity.
  const ExpParts<D, V> parts(d, AtMost(d, AtLeast(d, x, -104.0f), 89.0f));
  return TimesPowerOfTwo(d, hn::Add(parts.expm1_r, hn::Set(d, 1.0f)), parts.q, parts.whole);
}

inline constexpr float kLeastNormalExp = -87.3365f;  // ln(2^-126)

// x = whole ln 2 + r as in ExpParts, by one float for ln 2, which costs the exponential a unit in
// the last place at e^-20 and three at e^-60. 1 + expm1(r).
template <class D, class V>
HWY_INLINE V ExpOfRest(D d, V x, V whole) {
  const V r = hn::NegMulAdd(whole, hn::Set(d, 0.693147181f), x);
  return hn::Add(Expm1OfFraction(d, r), hn::Set(d, 1.0f));
}

// exp(x) for x <= 0, or NaN, in less than VecExp's instructions; 0 where that is no normal number.
// Masks of -100 lead there, and a product with such a number takes processors a hundred times as
// long as another.
template <class D, class V>
HWY_INLINE V VecExpNonPositive(D d, V x) {
  const V bounded = AtLeast(d, x, kLeastNormalExp);
#if HWY_NATIVE_FMA
  // A sum of 1.5 * 2^23 and more is rounded to a whole number, which its low bits hold: here the
  // exponent's bits of 2^whole, a normal number.
  const V shifted = hn::Set(d, 0x1.8p23f + 127);
  const V sum = hn::Add(hn::Mul(bounded, hn::Set(d, 1.44269504f)), shifted);
  const hn::Rebind<int32_t, D> di;
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, sum)));
  const V e = hn::Mul(ExpOfRest(d, bounded, hn::Sub(sum, shifted)), power);
#else
  const V e = VecExp(d, bounded);
#endif
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeastNormalExp)), e);
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// The mask makes 0 of whatever minus infinity gives.
template <class D>
HWY_INLINE hn::Vec512<float> VecExpNonPositive(D d, hn::Vec512<float> x) {
  const auto whole = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const __mmask16 normal = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(kLeastNormalExp), _CMP_NLT_UQ);
  return hn::Vec512<float>{_mm512_maskz_scalef_ps(normal, ExpOfRest(d, x, whole).raw, whole.raw)};
}
#endif

// exp(x) - 1 without cancellation near 0. Precondition: x <= 0, or NaN.
template <class D, class V>
HWY_INLINE V VecExpm1NonPositive(D d, V x) {
  const ExpParts<D, V> parts(d, AtLeast(d, x, -30.0f));
  const V scale = PowerOfTwo(d, parts.q);
  return hn::MulAdd(scale, parts.expm1_r, hn::Sub(scale, hn::Set(d, 1.0f)));
}

template <class D, class V>
HWY_INLINE V VecLogistic(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, VecExp(d, hn::Neg(x))));
}

// x = 2^exponent (1 + f) with f in [-1/4, 1/2). Zero and infinity have infinite exponents, and
// where x is negative or NaN one of the two is NaN.
template <class V>
struct LogParts {
  V exponent, f;
};
template <class D, class V>
HWY_INLINE LogParts<V> SplitForLog(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto denormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V normal = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x);
  const auto bits = hn::BitCast(di, normal);
  const auto whole = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F400000)));  // 3/4
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(whole))), hn::Set(d, 1.0f));
  V exponent = hn::Sub(hn::ConvertTo(d, whole), hn::IfThenElseZero(denormal, hn::Set(d, 23.0f)));
  exponent = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInfinity), exponent);
  exponent = hn::IfThenElse(hn::Eq(x, hn::Set(d, kInfinity)), x, exponent);
  // NaN compares as false.
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  return {hn::IfThenElse(hn::Ge(x, hn::Zero(d)), exponent, nan), f};
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
template <class D>
HWY_INLINE LogParts<hn::Vec512<float>> SplitForLog(D /*d*/, hn::Vec512<float> x) {
  const __m512 one = _mm512_set1_ps(1.0f), exponent = _mm512_getexp_ps(x.raw);
  const __m512 m = _mm512_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  const __mmask16 next = _mm512_cmp_ps_mask(m, one, _CMP_LT_OQ);
  return {hn::Vec512<float>{_mm512_mask_add_ps(exponent, next, exponent, one)},
          hn::Vec512<float>{_mm512_sub_ps(m, one)}};
}
#endif

template <class D, class V>
HWY_INLINE V VecLog(D d, V x) {
  // (log(1 + f) - f + f^2 / 2) / f^3, relative error of the logarithm 4.9e-9.
  constexpr float kTail[] = {0.333334506f, -0.250000954f, 0.199908614f, -0.16647312f,
                             0.144784003f, -0.131611973f, 0.104629949f, -0.0450744554f};
  const auto [exponent, f] = SplitForLog(d, x);
  const V tail = hn::MulAdd(Polynomial(d, f, kTail), f, hn::Set(d, -0.5f));
  // ln 2 in two parts of one sign, since exponents are infinite. The high part has 17 bits, so that
  // its product is exact without FMA too.
  const V low = hn::MulAdd(exponent, hn::Set(d, 9.0580006145e-06f), hn::Mul(hn::Mul(f, f), tail));
  return hn::MulAdd(exponent, hn::Set(d, 0.69313812256f), hn::Add(f, low));
}

// x P(x^2) / Q(x^2) up to `limit`, +-1 beyond it; NaN stays.
template <class D, class V, size_t kP, size_t kQ>
HWY_INLINE V OddRational(D d, V x, float limit, const float (&p)[kP], const float (&q)[kQ]) {
  const V bounded = AtMost(d, AtLeast(d, x, -limit), limit);
  const V square = hn::Mul(bounded, bounded);
  const V ratio = hn::Div(hn::Mul(bounded, Polynomial(d, square, p)), Polynomial(d, square, q));
  const V limited = AtMost(d, AtLeast(d, ratio, -1.0f), 1.0f);
  return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, limit)), hn::CopySign(hn::Set(d, 1.0f), x),
                        limited);
}

template <class D, class V>
HWY_INLINE V VecTanh(D d, V x) {
  // Error of the fit 1.3e-9, as evaluated 3.5e-7, both relative.
  constexpr float kP[] = {1.0f,          0.136808455f,   0.00386949489f,
                          2.8031041e-5f, 3.06418499e-8f, -1.22457131e-11f};
  constexpr float kQ[] = {1.0f, 0.470141768f, 0.0272501092f, 3.94069008e-4f, 1.28901582e-6f};
  return OddRational(d, x, 9.0f, kP, kQ);
}

template <class D, class V>
HWY_INLINE V VecErf(D d, V x) {
  // Error of the fit 1.9e-8, as evaluated 3.8e-7, both relative.
  constexpr float kP[] = {1.12837911f,    0.190786138f,   0.0527904704f,
                          0.00377967698f, 2.84804555e-4f, 2.04187791e-6f};
  constexpr float kQ[] = {1.0f,          0.502412558f,   0.114258371f,
                          0.0149975754f, 0.00116521900f, 3.80029087e-5f};
  return OddRational(d, x, 3.93f, kP, kQ);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
