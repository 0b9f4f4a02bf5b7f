// Sines and cosines of float32 vectors, computed in double precision and rounded once, as <cmath>'s
// functions mostly are. NaN and infinities give what <cmath> gives.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_SINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_SINES_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_SINES_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_SINES_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f(i) for i < kCount. What follows goes step by step over a few vectors, each step over all of
// them: in the order of the vectors a core's queue would fill with steps that wait for each other.
template <size_t kCount, class F>
HWY_INLINE void ForEach(F f) {
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) f(i);
}

// In place of each z, the polynomial of it whose coefficients are `p`, that of z^0 first.
template <class D, class V, size_t kCount, size_t kTerms>
HWY_INLINE void Polynomials(D d, const double (&p)[kTerms], V (&z)[kCount]) {
  V sum[kCount];
  ForEach<kCount>([&](size_t i) HWY_ATTR { sum[i] = hn::Set(d, p[kTerms - 1]); });
  HWY_UNROLL(8)
  for (size_t term = 2; term <= kTerms; ++term) {
    const V next = hn::Set(d, p[kTerms - term]);
    ForEach<kCount>([&](size_t i) HWY_ATTR { sum[i] = hn::MulAdd(sum[i], z[i], next); });
  }
  ForEach<kCount>([&](size_t i) HWY_ATTR { z[i] = sum[i]; });
}

// sin(r) for |r| up to a bit more than pi / 2, in double precision: r (1 + z P(z)), z = r^2. The
// relative error of the fit is 2.4e-11, so that one or two in 10,000 results are rounded to another
// float than the exact ones. -0 stays what it is.
template <class D, class V, size_t kCount>
HWY_INLINE void SinNearZero(D d, V (&r)[kCount]) {
  constexpr double kP[] = {1.0,
                           -0.16666666626154691,
                           0.008333331108823554,
                           -0.00019840868239594903,
                           2.752538598987731e-06,
                           -2.3888937531992816e-08};
  V z[kCount];
  ForEach<kCount>([&](size_t i) HWY_ATTR { z[i] = hn::Mul(r[i], r[i]); });
  Polynomials(d, kP, z);
  ForEach<kCount>([&](size_t i) HWY_ATTR { r[i] = hn::Mul(r[i], z[i]); });
}

// cos(r) for the same r: (1 - z / (pi / 2)^2) Q(z), multiplied out, whose zero is that of the
// cosine. The relative error of the fit is 3.6e-12; near the zero sums are off by 2e-16 at most.
template <class D, class V, size_t kCount>
HWY_INLINE void CosNearZero(D d, V (&r)[kCount]) {
  constexpr double kP[] = {0.9999999999963757,     -0.49999999989772465,   0.041666666166575765,
                           -0.0013888879321895366, 2.4800687253549215e-05, -2.75127055060973e-07,
                           1.9753892146299807e-09};
  ForEach<kCount>([&](size_t i) HWY_ATTR { r[i] = hn::Mul(r[i], r[i]); });
  Polynomials(d, kP, r);
}

// x - count pi, for up to 2^14 of them. What is left of the first part is exact: with
// FMA of all of its bits, else of 33.
template <class D, class V, size_t kCount>
HWY_INLINE void TakeMultiplesOfPi(D d, const V (&count)[kCount], V (&x)[kCount]) {
#if HWY_NATIVE_FMA
  constexpr double kParts[] = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
#else
  constexpr double kParts[] = {0x1.921fb54400000p+1, 0x1.0b4611a600000p-33, 0x1.3198a2e037073p-68};
#endif
  for (const double part : kParts) {
    const V pi = hn::Set(d, part);
    ForEach<kCount>([&](size_t i) HWY_ATTR { x[i] = hn::NegMulAdd(count[i], pi, x[i]); });
  }
}

// What is added to a quotient leaves its nearest whole number in the last bits of the sum.
constexpr double kWholeInLastBits = 0x1.8p52, kOneByPi = 0x1.45f306dc9c883p-2;

// The sines of floats in double precision, in their place, or their cosines: those of
// x = count pi + r are (-1)^count sin(r) and (-1)^count cos(r).
template <bool kCosines, class D, class V, size_t kCount>
HWY_INLINE void SinesOfFloats(D d, V (&x)[kCount]) {
  const hn::RebindToUnsigned<D> bits;
  const V whole = hn::Set(d, kWholeInLastBits), by_pi = hn::Set(d, kOneByPi);
  V sum[kCount], count[kCount];
  ForEach<kCount>([&](size_t i) HWY_ATTR { sum[i] = hn::MulAdd(x[i], by_pi, whole); });
  ForEach<kCount>([&](size_t i) HWY_ATTR { count[i] = hn::Sub(sum[i], whole); });
  TakeMultiplesOfPi(d, count, x);
  kCosines ? CosNearZero(d, x) : SinNearZero(d, x);
  ForEach<kCount>([&](size_t i) HWY_ATTR {
    x[i] = hn::Xor(x[i], hn::BitCast(d, hn::ShiftLeft<63>(hn::BitCast(bits, sum[i]))));
  });
}

// Counts of pi stay below 2^14 up to here; larger values go through <cmath>.
constexpr float kTrigonometricRange = 39000.0f;

// f(wide, x), which works on vectors x of doubles in their place, of in[0, kVectors * Lanes(d)):
// rounded once, as <cmath>'s functions mostly are. LiteRT calls those, and what a rotary embedding
// makes of the last bit a decoder quantizes. Halves of vectors are converted on their way from and
// to memory.
template <size_t kVectors, class D, class F>
HWY_INLINE void InDoubles([[maybe_unused]] D d, const float* in, float* out, F f) {
  const hn::RepartitionToWide<D> wide;
  const hn::Rebind<float, decltype(wide)> half;
  const size_t lanes = hn::Lanes(wide);
  hn::Vec<decltype(wide)> x[2 * kVectors];
  ForEach<2 * kVectors>(
      [&](size_t h) HWY_ATTR { x[h] = hn::PromoteTo(wide, hn::LoadU(half, in + h * lanes)); });
  f(wide, x);
  ForEach<2 * kVectors>(
      [&](size_t h) HWY_ATTR { hn::StoreU(hn::DemoteTo(half, x[h]), half, out + h * lanes); });
}

// Whether none of kVectors vectors has a value beyond the range. Several maxima hide the latency of
// one.
template <size_t kVectors, class D>
HWY_INLINE bool WithinTrigonometricRange(D d, const float* in) {
  constexpr size_t kMaxima = kVectors < 4 ? kVectors : 4;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<D> largest[kMaxima];
  HWY_UNROLL(4)
  for (size_t m = 0; m < kMaxima; ++m) largest[m] = hn::Abs(hn::LoadU(d, in + m * lanes));
  for (size_t v = kMaxima; v < kVectors; v += kMaxima) {
    HWY_UNROLL(4)
    for (size_t m = 0; m < kMaxima; ++m) {
      largest[m] = hn::Max(largest[m], hn::Abs(hn::LoadU(d, in + (v + m) * lanes)));
    }
  }
  HWY_UNROLL(4)
  for (size_t m = 1; m < kMaxima; ++m) largest[0] = hn::Max(largest[0], largest[m]);
  return hn::AllTrue(d, hn::Le(largest[0], hn::Set(d, kTrigonometricRange)));
}

// Computes a vector's sines or cosines in double precision with `f`, and those of values beyond its
// range with `each`, the function of <cmath>.
template <class D, class F, class Each>
HWY_INLINE void TrigonometricVector(D d, const float* in, float* out, F f, Each each) {
  HWY_ALIGN float x[hn::MaxLanes(d)];
  hn::Store(hn::LoadU(d, in), d, x);
  InDoubles<1>(d, x, out, f);
  if (WithinTrigonometricRange<1>(d, x)) return;
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (std::abs(x[i]) > kTrigonometricRange) out[i] = each(x[i]);
  }
}

// Computes out[0, n) of in[0, n) with `f` and `each` as TrigonometricVector does. in == out is
// allowed. The range is looked at for many vectors at once: for two it takes a tenth of the time.
template <class D, class F, class Each>
HWY_INLINE void TrigonometricRun(D d, const float* in, float* out, size_t n, F f, Each each) {
  constexpr size_t kTogether = 16, kVectors = 2;
  const size_t lanes = hn::Lanes(d);
  const auto one = [&](size_t at) HWY_ATTR { TrigonometricVector(d, in + at, out + at, f, each); };
  size_t i = 0;
  for (; i + kTogether * lanes <= n; i += kTogether * lanes) {
    if (!WithinTrigonometricRange<kTogether>(d, in + i)) {
      for (size_t v = 0; v < kTogether; ++v) one(i + v * lanes);
      continue;
    }
    for (size_t v = 0; v < kTogether; v += kVectors) {
      InDoubles<kVectors>(d, in + i + v * lanes, out + i + v * lanes, f);
    }
  }
  for (; i + lanes <= n; i += lanes) one(i);
  if (i == n) return;
  HWY_ALIGN float last[hn::MaxLanes(d)];
  hn::Store(LoadPartial(d, in + i, n - i), d, last);
  TrigonometricVector(d, last, last, f, each);
  StorePartial(hn::Load(d, last), d, out + i, n - i);
}

template <class D>
HWY_NOINLINE void SinRun(D d, const float* in, float* out, size_t n) {
  TrigonometricRun(
      d, in, out, n, [](auto wide, auto& x) HWY_ATTR { SinesOfFloats<false>(wide, x); },
      [](float x) { return std::sin(x); });
}

template <class D>
HWY_NOINLINE void CosRun(D d, const float* in, float* out, size_t n) {
  TrigonometricRun(
      d, in, out, n, [](auto wide, auto& x) HWY_ATTR { SinesOfFloats<true>(wide, x); },
      [](float x) { return std::cos(x); });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
