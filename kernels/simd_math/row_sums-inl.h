// Sums and maxima over a row, in an order that only its length and the vector's decide.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_ROW_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_ROW_SUMS_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_ROW_SUMS_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_ROW_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of f(x[i]) over the row. Four accumulators hide the addition's latency.

template <class F>
HWY_INLINE float RowSum(const float* x, size_t n, F f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, f(hn::LoadU(d, x + i)));
    b = hn::Add(b, f(hn::LoadU(d, x + i + lanes)));
    c = hn::Add(c, f(hn::LoadU(d, x + i + 2 * lanes)));
    e = hn::Add(e, f(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, f(hn::LoadU(d, x + i)));
  if (i < n) {
    const auto last = f(LoadPartial(d, x + i, n - i));
    b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(d, n - i), last));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Precondition: n > 0.
HWY_INLINE float RowMax(const float* x, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  if (n < lanes) {
    float largest = x[0];
    for (size_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    return largest;
  }
  // The last vector overlaps the one before: a maximum may see an element twice.
  auto largest = hn::LoadU(d, x + n - lanes);
  for (size_t i = 0; i + lanes <= n; i += lanes) largest = hn::Max(largest, hn::LoadU(d, x + i));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// y[i] = f(x[i]).
template <class T, class F>
HWY_INLINE void RowMap(const T* x, T* y, size_t n, F f) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StorePartial(f(LoadPartial(d, x + i, n - i)), d, y + i, n - i);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
