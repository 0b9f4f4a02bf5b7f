// What pools do with the values of their windows, on vectors of every target.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_POOL_TOTALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_POOL_TOTALS_INL_H_
#undef FUSELITE_KERNELS_POOL_TOTALS_INL_H_
#else
#define FUSELITE_KERNELS_POOL_TOTALS_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "kernels/pool/pool.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/simd_math-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What changes no total: the least value for a maximum, else 0.
template <PoolKind kKind, class T>
constexpr T NoTotal() {
  return kKind == PoolKind::kMax ? std::numeric_limits<T>::lowest() : T{0};
}

// Adds a tap to a total, or one total to another. A NaN is no maximum.
template <PoolKind kKind, class V>
HWY_INLINE V CombineTaps(V total, V value) {
  if constexpr (kKind == PoolKind::kL2) return hn::Add(total, hn::Mul(value, value));
  if constexpr (kKind == PoolKind::kAverage) return hn::Add(total, value);
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return StdMax(total, value);
  } else {
    return hn::Max(total, value);
  }
}

// The result of floats; `count` taps are in `total`. NaNs of means stay.
template <PoolKind kKind, class V>
HWY_INLINE V FloatOfTotal(V total, V count, float low, float high) {
  const hn::DFromV<V> d;
  V value = total;
  if constexpr (kKind != PoolKind::kMax) value = hn::Div(total, count);
  if constexpr (kKind == PoolKind::kL2) value = hn::Sqrt(value);
  return AtMost(d, AtLeast(d, value, low), high);
}

// The sum of so many int16 and half of their count is below 2^24.
inline constexpr int32_t kMostSmallInt16 = 511;

// Means of T by their sums of `count` values, within [low, high]. Halves are rounded away from
// zero, or up where T has no sign.
template <class T>
class IntegerMeans {
  using Int = hn::ScalableTag<int32_t>;

 public:
  IntegerMeans(int32_t count, int32_t low, int32_t high) : count_(count), low_(low), high_(high) {
    while ((1 << bits_) < count) ++bits_;
    factor_ = static_cast<uint16_t>(((uint32_t{1} << (15 + bits_)) + count - 1) / count);
  }

  // Sums of 32 bits, or of 16 with the sign of T, of which the first n are stored.
  template <class D>
  HWY_INLINE void Store(D d, hn::Vec<D> sums, T* out, size_t n) const {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      StoreWide(sums, out, n);
    } else if (count_ > 1 && count_ <= kMostMultiplied) {
      StoreMultiplied(d, sums, out, n);
    } else {
      const hn::Half<D> half;
      const size_t lanes = hn::Lanes(half);
      const Int wide;
      StoreWide(hn::PromoteTo(wide, hn::LowerHalf(half, sums)), out, HWY_MIN(n, lanes));
      if (n <= lanes) return;
      StoreWide(hn::PromoteTo(wide, hn::UpperHalf(half, sums)), out + lanes, n - lanes);
    }
  }

 private:
  // Sums of so many bytes and half of their count are below 2^15. For such n and a count of up to
  // 2^bits, with factor = 2^(15 + bits) / count rounded up to f count - 2^(15 + bits) < count more,
  //   n / count = n factor / 2^(15 + bits), both cut to integers:
  // what n times that is too much stays below the 1 / count that n / count lacks of an integer.
  static constexpr int32_t kMostMultiplied = 128;

  template <class D>
  HWY_INLINE void StoreMultiplied(D, hn::Vec<D> sums, T* out, size_t n) const {
    const hn::ScalableTag<uint16_t> du;
    const hn::ScalableTag<int16_t> di;
    const auto half = hn::Set(du, static_cast<uint16_t>(count_ / 2));
    const auto magnitude = [&] {
      if constexpr (std::is_signed_v<T>) return hn::BitCast(du, hn::Abs(sums));
      if constexpr (!std::is_signed_v<T>) return sums;
    }();
    const auto product = hn::MulHigh(hn::Add(magnitude, half), hn::Set(du, factor_));
    auto mean = hn::BitCast(di, hn::ShiftRightSame(product, bits_ - 1));
    if constexpr (std::is_signed_v<T>) {
      mean = hn::IfThenElse(hn::Lt(sums, hn::Zero(di)), hn::Neg(mean), mean);
    }
    const auto low = hn::Set(di, static_cast<int16_t>(low_));
    const auto high = hn::Set(di, static_cast<int16_t>(high_));
    const hn::Rebind<T, decltype(di)> narrow;
    const auto clamped = hn::Min(hn::Max(mean, low), high);
    StoreUpTo(hn::DemoteTo(narrow, clamped), narrow, out, n);
  }

  // One by one, which is little beside the sums of so many.
  HWY_INLINE hn::Vec<Int> DivideLarge(hn::Vec<Int> sums) const {
    const Int d;
    HWY_ALIGN int32_t means[hn::MaxLanes(Int())];
    hn::Store(sums, d, means);
    for (int32_t& mean : means) mean /= count_;
    return hn::Load(d, means);
  }

  // Sums below 2^24 are exact in float, and their quotient is cut to the right integer: one that
  // is not whole differs from the next integer by more than it is rounded.
  HWY_INLINE void StoreWide(hn::Vec<Int> total, T* out, size_t n) const {
    const Int d;
    const hn::ScalableTag<float> df;
    const hn::Rebind<T, Int> narrow;
    auto half = hn::Set(d, count_ / 2);
    if constexpr (std::is_signed_v<T>) {
      half = hn::IfThenElse(hn::Gt(total, hn::Zero(d)), half, hn::Neg(half));
    }
    const auto sum = hn::Add(total, half);
    const auto quotient = hn::Div(hn::ConvertTo(df, sum), hn::Set(df, static_cast<float>(count_)));
    auto mean = hn::ConvertTo(d, quotient);
    if (sizeof(T) == 2 && count_ > kMostSmallInt16) mean = DivideLarge(sum);
    const auto clamped = hn::Min(hn::Max(mean, hn::Set(d, low_)), hn::Set(d, high_));
    StoreUpTo(hn::DemoteTo(narrow, clamped), narrow, out, n);
  }

  int32_t count_, low_, high_;
  int bits_ = 0;
  uint16_t factor_ = 0;
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
