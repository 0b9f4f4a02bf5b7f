// Rounded products of rows of bytes with factors that many bytes share, in floats: one row of
// factors for all rows, as channels with their gates, or one factor for each row.
//
// A product of bytes is exact in floats, so that results are those of ShortProduct, in four fifths
// of its instructions and with what belongs to a factor in registers.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_ELEMENTWISE_REPEATED_FACTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_ELEMENTWISE_REPEATED_FACTORS_INL_H_
#undef FUSELITE_KERNELS_ELEMENTWISE_REPEATED_FACTORS_INL_H_
#else
#define FUSELITE_KERNELS_ELEMENTWISE_REPEATED_FACTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "kernels/elementwise/quantized/quantized_rows.h"
#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/pack_bytes-inl.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The numbers of a RoundedProduct of bytes as they lie in memory, T being int8_t or uint8_t: where
// they are flipped to unsigned ones, its zero points are 128 higher than theirs.
template <class T>
struct FloatProduct {
  using Bytes = hn::ScalableTag<T>;
  using Shorts = hn::Repartition<int16_t, Bytes>;
  using Ints = hn::Repartition<int32_t, Bytes>;
  using Floats = hn::Repartition<float, Bytes>;

  float x_zero, y_zero;
  hn::Vec<Floats> scale, nudge, sign;
  hn::Vec<Shorts> zero;
  hn::Vec<Bytes> min, max;

  HWY_INLINE FloatProduct(const RoundedProduct& f, uint8_t flip)
      : x_zero(static_cast<float>(f.x_zero - flip)),
        y_zero(static_cast<float>(f.y_zero - flip)),
        scale(hn::Set(Floats(), f.scale)),
        nudge(hn::Set(Floats(), f.nudge)),
        sign(hn::Set(Floats(), -0.0f)),
        zero(hn::Set(Shorts(), static_cast<int16_t>(f.zero - flip))),
        min(hn::Set(Bytes(), static_cast<T>(f.min - flip))),
        max(hn::Set(Bytes(), static_cast<T>(f.max - flip))) {}
};

// The factors of a vector of bytes, in four parts: x times one is factor x + start.
template <class T>
class FactorChunk {
 public:
  using Product = FloatProduct<T>;
  using Bytes = typename Product::Bytes;
  using Ints = typename Product::Ints;
  using Floats = typename Product::Floats;

  // `y`: a vector of bytes.
  HWY_INLINE FactorChunk(const Product& f, const T* y) {
    SetPart<0>(f, y);
    SetPart<1>(f, y);
    SetPart<2>(f, y);
    SetPart<3>(f, y);
  }
  HWY_INLINE FactorChunk(const Product& f, T y) {
    const float factor = static_cast<float>(y) - f.y_zero;
    factor_[0] = factor_[1] = factor_[2] = factor_[3] = hn::Set(Floats(), factor);
    start_[0] = start_[1] = start_[2] = start_[3] = hn::Set(Floats(), -f.x_zero * factor);
  }

  // `x`: a vector of bytes.
  HWY_INLINE hn::Vec<Bytes> Times(const Product& f, const T* x) const {
    const typename Product::Shorts d;
    const auto low = hn::ReorderDemote2To(d, Part<0>(f, x), Part<1>(f, x));
    const auto high = hn::ReorderDemote2To(d, Part<2>(f, x), Part<3>(f, x));
    const auto bytes =
        PackBytes(Bytes(), hn::SaturatedAdd(low, f.zero), hn::SaturatedAdd(high, f.zero));
    return hn::Min(hn::Max(InOrder(bytes), f.min), f.max);
  }

 private:
  // Without a loop, so that compilers keep each part in a register.
  template <int kPart>
  HWY_INLINE void SetPart(const Product& f, const T* y) {
    const hn::Rebind<T, Ints> quarter;
    const auto bytes = hn::PromoteTo(Ints(), hn::LoadU(quarter, y + kPart * hn::Lanes(Ints())));
    factor_[kPart] = hn::Sub(hn::ConvertTo(Floats(), bytes), hn::Set(Floats(), f.y_zero));
    start_[kPart] = hn::Mul(factor_[kPart], hn::Set(Floats(), -f.x_zero));
  }
  template <int kPart>
  HWY_INLINE hn::Vec<Ints> Part(const Product& f, const T* x) const {
    const hn::Rebind<T, Ints> quarter;
    const auto bytes = hn::PromoteTo(Ints(), hn::LoadU(quarter, x + kPart * hn::Lanes(Ints())));
    const auto p = hn::MulAdd(hn::ConvertTo(Floats(), bytes), factor_[kPart], start_[kPart]);
    return NearestInRange(hn::MulAdd(p, f.scale, hn::OrAnd(f.nudge, p, f.sign)));
  }
  // Each block of 16 bytes has four of each part.
  static HWY_INLINE hn::Vec<Bytes> InOrder(hn::Vec<Bytes> v) {
    constexpr size_t kLanes = hn::MaxLanes(Ints()), kBlocks = kLanes / 4;
    if constexpr (kBlocks == 1) {
      return v;
    } else {
      HWY_ALIGN static constexpr auto kOrder = [] {
        std::array<int32_t, kLanes> order{};
        for (size_t i = 0; i < kLanes; ++i) {
          order[i] = static_cast<int32_t>(i % kBlocks * 4 + i / kBlocks);
        }
        return order;
      }();
      const auto indices = hn::SetTableIndices(Ints(), kOrder.data());
      return hn::BitCast(Bytes(), hn::TableLookupLanes(hn::BitCast(Ints(), v), indices));
    }
  }

  hn::Vec<Floats> factor_[4], start_[4];
};

// A vector of bytes, or the `n` that are left of a row.
template <class T>
HWY_INLINE void MultiplyChunk(const FloatProduct<T>& f, const FactorChunk<T>& factors, const T* x,
                              T* out, size_t n) {
  const hn::ScalableTag<T> d;
  if (n >= hn::Lanes(d)) return hn::StoreU(factors.Times(f, x), d, out);
  HWY_ALIGN T rest[hn::MaxLanes(d)];
  hn::Store(LoadPartial(d, x, n), d, rest);
  StorePartial(factors.Times(f, rest), d, out, n);
}

// Precondition: x steps; y is one row for all rows, or has one factor for each.
template <class T>
void MultiplyByRepeated(const RoundedProduct& rounded, uint8_t flip, const RowBlock& b) {
  // So many rows meet a vector of factors before the next: they stay in L1.
  constexpr int64_t kTogether = 8;
  const hn::ScalableTag<T> d;
  const FloatProduct<T> f(rounded, flip);
  const auto* const x = static_cast<const T*>(b.x);
  const auto* const y = static_cast<const T*>(b.y);
  auto* const out = static_cast<T*>(b.out);
  const size_t n = static_cast<size_t>(b.n), lanes = hn::Lanes(d);
  for (int64_t first = 0; b.y_step == 1 && first < b.rows; first += kTogether) {
    const int64_t last = std::min(first + kTogether, b.rows);
    for (size_t i = 0; i < n; i += lanes) {
      HWY_ALIGN T bytes[hn::MaxLanes(d)];
      hn::Store(LoadUpTo(d, y + i, n - i), d, bytes);
      const FactorChunk<T> factors(f, bytes);
      for (int64_t r = first; r < last; ++r) {
        MultiplyChunk(f, factors, x + r * b.x_stride + i, out + r * b.out_stride + i, n - i);
      }
    }
  }
  for (int64_t r = 0; b.y_step == 0 && r < b.rows; ++r) {
    const FactorChunk<T> factors(f, y[r * b.y_stride]);
    for (size_t i = 0; i < n; i += lanes) {
      MultiplyChunk(f, factors, x + r * b.x_stride + i, out + r * b.out_stride + i, n - i);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
