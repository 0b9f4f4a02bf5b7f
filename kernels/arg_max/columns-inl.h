// The extremes of neighbouring columns and where they stand first: a lane for each column, or, of
// fewer columns than lanes, one for each value of some rows.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ARG_MAX_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ARG_MAX_COLUMNS_INL_H_
#undef FUSELITE_KERNELS_ARG_MAX_COLUMNS_INL_H_
#else
#define FUSELITE_KERNELS_ARG_MAX_COLUMNS_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "kernels/arg_max/arg_max.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Values in 32 bits: float for itself, integers as int32.
template <class T>
HWY_INLINE auto LoadValues(const T* p, size_t n) {
  if constexpr (sizeof(T) == 4) {
    return LoadUpTo(hn::ScalableTag<T>(), p, n);
  } else {
    const hn::ScalableTag<int32_t> d;
    return hn::PromoteTo(d, LoadUpTo(hn::Rebind<T, decltype(d)>(), p, n));
  }
}

// The best value that each lane was given, and its number.
template <class T, bool max>
struct LaneExtremes {
  using Indices = hn::ScalableTag<int32_t>;
  using Value = std::conditional_t<sizeof(T) == 4, T, int32_t>;
  static constexpr hn::ScalableTag<Value> kValues{};

  hn::Vec<hn::ScalableTag<Value>> best;
  hn::Vec<Indices> index = hn::Zero(Indices());

  HWY_INLINE void Take(hn::Vec<hn::ScalableTag<Value>> x, int64_t number) {
    const Indices di;
    auto better = max ? hn::Gt(x, best) : hn::Lt(x, best);
    // Any number replaces a NaN.
    if constexpr (std::is_same_v<T, float>) {
      better = hn::Or(better, hn::And(hn::IsNaN(best), hn::Eq(x, x)));
    }
    best = hn::IfThenElse(better, x, best);
    index = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, static_cast<int32_t>(number)),
                           index);
  }
};

// `columns` of `size` values each, `stride` values apart.
template <class T, bool max>
void ArgColumnsOf(const void* in, int64_t columns, int64_t size, int64_t stride, ArgOutput out) {
  const hn::ScalableTag<int32_t> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(di));
  HWY_ALIGN int32_t found[hn::MaxLanes(di)];
  for (int64_t c = 0; c < columns; c += lanes) {
    const T* column = static_cast<const T*>(in) + c;
    const size_t n = HWY_MIN(columns - c, lanes);
    LaneExtremes<T, max> extremes{LoadValues(column, n)};
    for (int64_t i = 1; i < size; ++i) extremes.Take(LoadValues(column + i * stride, n), i);
    if (n == static_cast<size_t>(lanes) && !out.wide) {
      hn::StoreU(extremes.index, di, static_cast<int32_t*>(out.data) + c);
      continue;
    }
    hn::Store(extremes.index, di, found);
    for (size_t i = 0; i < n; ++i) out.Set(c + static_cast<int64_t>(i), found[i]);
  }
}

// The first extreme of one column, given in any order.
template <class T, bool max>
struct FirstExtreme {
  T value{};
  int64_t at = -1;  // none but NaNs were given

  void Take(T x, int64_t i) {
    if constexpr (std::is_same_v<T, float>) {
      if (std::isnan(x)) return;
    }
    const bool better = max ? x > value : x < value;
    if (at >= 0 && !better && (x != value || i > at)) return;
    value = x;
    at = i;
  }
};

// Fewer than a vector's lanes, side by side: some rows are whole vectors, whose lanes each keep the
// extreme of every so many rows. Two columns of 2,000 bytes take 1.4 us so, and 18.9 with a lane
// for each column (Zen 3, the host's call included).
template <class T, bool max>
void ArgFewColumnsOf(const void* in, int64_t columns, int64_t size, ArgOutput out) {
  using Extremes = LaneExtremes<T, max>;
  const hn::ScalableTag<int32_t> di;
  const auto* const values = static_cast<const T*>(in);
  const auto lanes = static_cast<int64_t>(hn::Lanes(di));
  const int64_t vectors = columns / std::gcd(columns, lanes), rows = vectors * lanes / columns;
  const int64_t steps = size / rows;
  std::array<FirstExtreme<T, max>, hn::MaxLanes(di)> found;
  HWY_ALIGN typename Extremes::Value best[hn::MaxLanes(di)];
  HWY_ALIGN int32_t index[hn::MaxLanes(di)];
  for (int64_t v = 0; v < vectors && steps > 0; ++v) {
    const auto load = [&](int64_t step) HWY_ATTR {
      return LoadValues(values + (step * vectors + v) * lanes, static_cast<size_t>(lanes));
    };
    Extremes extremes{load(0)};
    for (int64_t step = 1; step < steps; ++step) extremes.Take(load(step), step);
    hn::Store(extremes.best, Extremes::kValues, best);
    hn::Store(extremes.index, di, index);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t place = v * lanes + lane;
      found[place % columns].Take(static_cast<T>(best[lane]), index[lane] * rows + place / columns);
    }
  }
  for (int64_t i = steps * rows * columns; i < size * columns; ++i) {
    found[i % columns].Take(values[i], i / columns);
  }
  for (int64_t c = 0; c < columns; ++c) out.Set(c, HWY_MAX(found[c].at, 0));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
