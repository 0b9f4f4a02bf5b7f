// The extreme of a row of any length and where it stands first, in two passes of vectors.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ARG_MAX_LONG_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ARG_MAX_LONG_ROW_INL_H_
#undef FUSELITE_KERNELS_ARG_MAX_LONG_ROW_INL_H_
#else
#define FUSELITE_KERNELS_ARG_MAX_LONG_ROW_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, bool max>
constexpr T Worst() {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity) return max ? -Limits::infinity() : Limits::infinity();
  return max ? Limits::lowest() : Limits::max();
}

// The extreme of a row, Worst() where there are only NaNs.
template <class T, bool max>
HWY_INLINE T ExtremeOf(const T* row, int64_t size) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::Set(d, Worst<T, max>());
  const auto take = [&](auto x) HWY_ATTR {
    // A comparison with a NaN is false.
    const auto better = max ? hn::Gt(x, best) : hn::Lt(x, best);
    best = hn::IfThenElse(better, x, best);
  };
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) take(hn::LoadU(d, row + i));
  if (i < size) {
    const auto last = LoadPartial(d, row + i, size - i);
    take(hn::IfThenElse(hn::FirstN(d, size - i), last, hn::Set(d, Worst<T, max>())));
  }
  if constexpr (sizeof(T) == 4) {
    return hn::GetLane(max ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
  } else {
    HWY_ALIGN T values[hn::MaxLanes(d)];
    hn::Store(best, d, values);
    T extreme = values[0];
    for (int64_t j = 1; j < lanes; ++j) {
      extreme = max ? HWY_MAX(extreme, values[j]) : HWY_MIN(extreme, values[j]);
    }
    return extreme;
  }
}

// 0 where there is none.
template <class T>
HWY_INLINE int64_t FirstOf(const T* row, int64_t size, T value) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, value);
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, row + i), wanted));
    if (at >= 0) return i + at;
  }
  if (i == size) return 0;
  const size_t left = size - i;
  const auto found = hn::And(hn::FirstN(d, left), hn::Eq(LoadPartial(d, row + i, left), wanted));
  const intptr_t at = hn::FindFirstTrue(d, found);
  return at >= 0 ? i + at : 0;
}

// The first place of the greatest value, or of the least: NaNs are passed over, and a row of
// nothing else has place 0.
template <class T, bool max>
HWY_INLINE int64_t ArgOfLongRow(const T* row, int64_t size) {
  return FirstOf<T>(row, size, ExtremeOf<T, max>(row, size));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
