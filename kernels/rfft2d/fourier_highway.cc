#include "kernels/rfft2d/fourier.h"
#include "kernels/rfft2d/fourier_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rfft2d/fourier_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Numbers {
  V re, im;
};

template <class D>
HWY_INLINE Numbers<hn::Vec<D>> LoadNumbers(D d, SplitRoots at) {
  return {hn::LoadU(d, at.re), hn::LoadU(d, at.im)};
}
template <class D>
HWY_INLINE Numbers<hn::Vec<D>> LoadNumbers(D d, SplitComplex at) {
  return LoadNumbers(d, SplitRoots{at.re, at.im});
}
template <class D, class V>
HWY_INLINE void StoreNumbers(D d, const Numbers<V>& x, SplitComplex at) {
  hn::StoreU(x.re, d, at.re);
  hn::StoreU(x.im, d, at.im);
}

template <class V>
HWY_INLINE Numbers<V> Times(const Numbers<V>& x, const Numbers<V>& y) {
  return {hn::NegMulAdd(x.im, y.im, hn::Mul(x.re, y.re)),
          hn::MulAdd(x.im, y.re, hn::Mul(x.re, y.im))};
}
template <class V>
HWY_INLINE Numbers<V> Plus(const Numbers<V>& x, const Numbers<V>& y) {
  return {hn::Add(x.re, y.re), hn::Add(x.im, y.im)};
}
template <class V>
HWY_INLINE Numbers<V> Minus(const Numbers<V>& x, const Numbers<V>& y) {
  return {hn::Sub(x.re, y.re), hn::Sub(x.im, y.im)};
}

template <class D, class V>
HWY_INLINE void JoinVectors(D d, SplitComplex a, SplitComplex b, const Numbers<V>& root) {
  const auto turned = Times(LoadNumbers(d, b), root);
  const auto kept = LoadNumbers(d, a);
  StoreNumbers(d, Plus(kept, turned), a);
  StoreNumbers(d, Minus(kept, turned), b);
}

#if HWY_ARCH_X86
// As many fours as there are lanes, each of their numbers in a vector. (GCC 12 for aarch64 does not
// come to an end with it.)
template <class D>
HWY_INLINE void JoinFoursAt(D d, SplitComplex x) {
  using N = Numbers<hn::Vec<D>>;
  hn::Vec<D> re0, re1, re2, re3, im0, im1, im2, im3;
  hn::LoadInterleaved4(d, x.re, re0, re1, re2, re3);
  hn::LoadInterleaved4(d, x.im, im0, im1, im2, im3);
  const N a = {re0, im0}, b = {re1, im1}, c = {re2, im2}, e = {re3, im3};
  const N sum = Plus(a, b), difference = Minus(a, b);
  const N far_sum = Plus(c, e), far_difference = Minus(c, e);
  const N turned = {far_difference.im, hn::Neg(far_difference.re)};
  const N first = Plus(sum, far_sum), second = Plus(difference, turned);
  const N third = Minus(sum, far_sum), fourth = Minus(difference, turned);
  hn::StoreInterleaved4(first.re, second.re, third.re, fourth.re, d, x.re);
  hn::StoreInterleaved4(first.im, second.im, third.im, fourth.im, d, x.im);
}

#endif

void JoinFoursVector(SplitComplex x, int64_t n) {
  int64_t i = 0;
#if HWY_ARCH_X86
  const hn::ScalableTag<double> d;
  const auto step = static_cast<int64_t>(4 * hn::Lanes(d));
  for (; i + step <= n; i += step) JoinFoursAt(d, x.At(i));
#endif
  for (; i < n; i += 4) JoinFours(x.re + i, x.im + i);
}

// Calls pass(d) with as many lanes as `half` is a multiple of.
template <class Pass>
HWY_INLINE void WithLanesFor(int64_t half, Pass pass) {
  const hn::ScalableTag<double> d;
  if (half >= static_cast<int64_t>(hn::Lanes(d))) return pass(d);
  if (half == 4) return pass(hn::CappedTag<double, 4>());
  pass(hn::CappedTag<double, 1>());
}

void JoinPassVector(SplitComplex x, int64_t n, int64_t half, SplitRoots roots) {
  WithLanesFor(half, [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t first = 0; first < n; first += 2 * half) {
      for (int64_t k = 0; k < half; k += lanes) {
        JoinVectors(d, x.At(first + k), x.At(first + half + k), LoadNumbers(d, roots.At(k)));
      }
    }
  });
}

void JoinTwiceVector(SplitComplex x, int64_t n, int64_t half, SplitRoots roots, SplitRoots next) {
  WithLanesFor(half, [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t first = 0; first < n; first += 4 * half) {
      for (int64_t k = 0; k < half; k += lanes) {
        const SplitComplex a = x.At(first + k), b = a.At(half), c = b.At(half), e = c.At(half);
        const auto root = LoadNumbers(d, roots.At(k));
        const auto kept = LoadNumbers(d, a), turned = Times(LoadNumbers(d, b), root);
        const auto other = LoadNumbers(d, c), other_turned = Times(LoadNumbers(d, e), root);
        const auto sum = Plus(kept, turned), difference = Minus(kept, turned);
        const auto far_sum = Times(Plus(other, other_turned), LoadNumbers(d, next.At(k)));
        const auto far_difference =
            Times(Minus(other, other_turned), LoadNumbers(d, next.At(half + k)));
        StoreNumbers(d, Plus(sum, far_sum), a);
        StoreNumbers(d, Plus(difference, far_difference), b);
        StoreNumbers(d, Minus(sum, far_sum), c);
        StoreNumbers(d, Minus(difference, far_difference), e);
      }
    }
  });
}

void JoinRowsVector(SplitComplex a, SplitComplex b, int64_t count, double root_re, double root_im) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Numbers<hn::Vec<decltype(d)>> root = {hn::Set(d, root_re), hn::Set(d, root_im)};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) JoinVectors(d, a.At(i), b.At(i), root);
  for (; i < count; ++i) JoinNumbers(a.At(i), b.At(i), {&root_re, &root_im});
}

void BinsVector(SplitComplex line, int64_t half, SplitRoots turns, SplitComplex out) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one_half = hn::Set(d, 0.5);
  OuterBins(line, half, out);
  int64_t k = 1;
  for (; k + lanes <= half; k += lanes) {
    const auto z = LoadNumbers(d, line.At(k));
    const auto back = LoadNumbers(d, line.At(half - k - lanes + 1));
    const Numbers<hn::Vec<decltype(d)>> mirrored = {hn::Reverse(d, back.re),
                                                    hn::Neg(hn::Reverse(d, back.im))};
    const auto sum = Plus(z, mirrored), difference = Minus(z, mirrored);
    const Numbers<hn::Vec<decltype(d)>> even = {hn::Mul(sum.re, one_half),
                                                hn::Mul(sum.im, one_half)};
    const Numbers<hn::Vec<decltype(d)>> odd = {hn::Mul(difference.im, one_half),
                                               hn::Neg(hn::Mul(difference.re, one_half))};
    StoreNumbers(d, Plus(even, Times(odd, LoadNumbers(d, turns.At(k)))), out.At(k));
  }
  for (; k < half; ++k) Bin(line, half, k, turns, out);
}

constexpr FourierFunctions kVectorFourier = {.join_fours = JoinFoursVector,
                                             .join = JoinPassVector,
                                             .join_twice = JoinTwiceVector,
                                             .join_rows = JoinRowsVector,
                                             .bins = BinsVector};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const FourierFunctions* FindFourier(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kVectorFourier);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
