// What SOFTMAX and attention make of rows: exponentials, and each divided by their sum.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SOFTMAX_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SOFTMAX_SOFTMAX_INL_H_
#undef FUSELITE_KERNELS_SOFTMAX_SOFTMAX_INL_H_
#else
#define FUSELITE_KERNELS_SOFTMAX_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/rows/row_kernel.h"
#include "kernels/simd.h"
#include "kernels/simd_math/row_sums-inl.h"
#include "kernels/simd_math/simd_math-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[i] = exp(scaled(in[i] - most)), or 0, for `most` the largest; returns the sum of all.
template <class Scaled>
HWY_INLINE float ExpScaledRow(const float* in, float* out, size_t n, float most, Scaled scaled) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto largest = hn::Set(d, most);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto e = VecExpNonPositive(d, scaled(hn::Sub(hn::LoadU(d, in + i), largest)));
    hn::StoreU(e, d, out + i);
    sum = hn::Add(sum, e);
  }
  if (i < n) {
    const auto x = LoadPartial(d, in + i, n - i);
    const auto e = VecExpNonPositive(d, scaled(hn::Sub(x, largest)));
    StorePartial(e, d, out + i, n - i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n - i), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// out[i] = exp(beta (in[i] - most)), or 0, for beta >= 0 and `most` the largest; returns the sum of
// all. In place where in == out.
HWY_INLINE float ExpRow(const float* in, float* out, size_t n, float beta, float most) {
  if (beta == 1) return ExpScaledRow(in, out, n, most, [](auto x) HWY_ATTR { return x; });
  const auto scale = hn::Set(hn::ScalableTag<float>(), beta);
  return ExpScaledRow(in, out, n, most, [=](auto x) HWY_ATTR { return hn::Mul(x, scale); });
}

HWY_INLINE void ScaleRow(const float* in, float* out, size_t n, float factor) {
  const auto factors = hn::Set(hn::ScalableTag<float>(), factor);
  RowMap(in, out, n, [&](auto x) HWY_ATTR { return hn::Mul(x, factors); });
}

// Rows of `n` floats, each of which becomes exp(beta (x - most)) over the sum of its own; `most`
// holds each row's largest, and is written over. In place where in.data == out.data. Each pass goes
// over all rows: within a row the quotients would wait for the sum and for what has been stored.
HWY_INLINE void SoftmaxBelow(float* most, const SourceRows& in, const ResultRows& out, size_t n,
                             float beta) {
  for (int64_t r = 0; r < in.rows; ++r) {
    float* const y = out.data + r * out.pitch;
    most[r] = 1.0f / ExpRow(in.data + r * in.pitch, y, n, beta, most[r]);
  }
  for (int64_t r = 0; r < in.rows; ++r) {
    float* const y = out.data + r * out.pitch;
    ScaleRow(y, y, n, most[r]);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
