// How totals of floats begin, take a value, and are joined from the lanes of vectors.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_REDUCE_FLOAT_TOTALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_REDUCE_FLOAT_TOTALS_INL_H_
#undef FUSELITE_KERNELS_REDUCE_FLOAT_TOTALS_INL_H_
#else
#define FUSELITE_KERNELS_REDUCE_FLOAT_TOTALS_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/reduce/reduce.h"
#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D4 = hn::FixedTag<float, 4>;

template <ReduceKind kKind>
HWY_INLINE float Start() {
  if constexpr (kKind == ReduceKind::kProd) return 1;
  if constexpr (kKind == ReduceKind::kMax) return std::numeric_limits<float>::lowest();
  if constexpr (kKind == ReduceKind::kMin) return std::numeric_limits<float>::max();
  return 0;
}

// Max and Min keep the total where the value is NaN, as the reference's comparison does.
template <ReduceKind kKind, class V>
HWY_INLINE V Combine(V total, V value) {
  if constexpr (kKind == ReduceKind::kProd) return hn::Mul(total, value);
  if constexpr (kKind == ReduceKind::kMax) return StdMax(total, value);
  if constexpr (kKind == ReduceKind::kMin) return StdMin(total, value);
  return hn::Add(total, value);
}

// Four lanes that together reduce to what all do, by halves.
template <ReduceKind kKind, class DV>
HWY_INLINE hn::Vec<D4> FourLanes(DV /*d*/, hn::Vec<DV> v) {
  if constexpr (hn::MaxLanes(DV()) > 4) {
    const hn::Half<DV> half;
    return FourLanes<kKind>(half, Combine<kKind>(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

// The product of all lanes: one after the other they would wait for each other.
template <class D>
HWY_INLINE float ProductOfLanes(D d, hn::Vec<D> v) {
  HWY_ALIGN float parts[4];
  hn::Store(FourLanes<ReduceKind::kProd>(d, v), D4(), parts);
  return (parts[0] * parts[1]) * (parts[2] * parts[3]);
}

// Reduces all lanes, none of which is a NaN where an extreme is asked for.
template <ReduceKind kKind, class D>
HWY_INLINE float Joined(D d, hn::Vec<D> totals) {
  if constexpr (kKind == ReduceKind::kMax) return hn::GetLane(hn::MaxOfLanes(d, totals));
  if constexpr (kKind == ReduceKind::kMin) return hn::GetLane(hn::MinOfLanes(d, totals));
  if constexpr (kKind == ReduceKind::kProd) return ProductOfLanes(d, totals);
  return hn::GetLane(hn::SumOfLanes(d, totals));
}

// a, b, c, e reduced.
template <ReduceKind kKind>
HWY_INLINE hn::Vec<D4> JoinedByFour(hn::Vec<D4> a, hn::Vec<D4> b, hn::Vec<D4> c, hn::Vec<D4> e) {
  const D4 d;
  const hn::FixedTag<double, 2> pairs;
  const auto fold = [&](hn::Vec<D4> x, hn::Vec<D4> y) HWY_ATTR {  // x, y, x, y
    return hn::BitCast(pairs,
                       Combine<kKind>(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y)));
  };
  const auto low = fold(a, b), high = fold(c, e);
  return Combine<kKind>(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                        hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
