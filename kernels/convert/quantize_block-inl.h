// Four vectors of floats to bytes: round(x / scale) + zero_point, halves away from zero, by the
// scale's reciprocal.
//
// A product's error is below 3 2^-24 of a value that counts up to 511 steps from zero: only what
// lies within kDoubt of the middle of two steps may round differently.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_
#undef FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_
#else
#define FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/simd.h"
#include "kernels/simd_math/join_bytes-inl.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// T: int8_t or uint8_t. A NaN becomes the lowest step.
template <class T>
class QuantizeBlock {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr float kDoubt = 0x1p-13f;
  static constexpr int32_t kLow = std::numeric_limits<T>::min(),
                           kHigh = std::numeric_limits<T>::max();

 public:
  // Whether the reciprocal has its full precision, and steps are as few as kDoubt supposes.
  static bool Takes(float scale, int32_t zero_point) {
    return scale > 0x1p-100f && scale < 0x1p100f && kLow <= zero_point && zero_point <= kHigh;
  }
  // Floats of a block.
  static size_t size() { return 4 * hn::Lanes(D()); }

  // False, with nothing written, where a value is in doubt.
  HWY_INLINE bool operator()(const float* in, T* out) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    V doubt = hn::Zero(d);
    const auto a = Rounded(in, &doubt), b = Rounded(in + lanes, &doubt),
               c = Rounded(in + 2 * lanes, &doubt), e = Rounded(in + 3 * lanes, &doubt);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(doubt, hn::Set(d, 0.5f - kDoubt))))) return false;
    hn::StoreU(Join(a, b, c, e), hn::ScalableTag<uint8_t>(), reinterpret_cast<uint8_t*>(out));
    return true;
  }

#if HWY_TARGET <= HWY_AVX3
  HWY_INLINE QuantizeBlock(float scale, int32_t zero_point)
      : inverse_(hn::Set(D(), 1 / scale)),
        most_(hn::Set(D(), static_cast<float>(kHigh - zero_point))),
        zero_point_(hn::Set(hn::ScalableTag<int16_t>(), static_cast<int16_t>(zero_point))),
        places_(JoinBytes::Places()) {}

 private:
  // Steps from zero, unbounded below, where a NaN is. `doubt` has the largest distance from a step.
  HWY_INLINE hn::Vec512<int32_t> Rounded(const float* in, V* doubt) const {
    constexpr int kToNearest = 0, kLargerMagnitudeWithoutSign = 0b1011;
    const auto quotient = hn::Mul(hn::LoadU(D(), in), inverse_);
    const auto bounded = _mm512_min_ps(most_.raw, quotient.raw);  // a NaN stays
    const auto distance = _mm512_reduce_ps(bounded, kToNearest);
    *doubt = V{_mm512_range_ps(doubt->raw, distance, kLargerMagnitudeWithoutSign)};
    return hn::Vec512<int32_t>{_mm512_cvtps_epi32(bounded)};
  }

  // Narrowing clamps to the type's range.
  HWY_INLINE hn::Vec512<uint8_t> Join(hn::Vec512<int32_t> a, hn::Vec512<int32_t> b,
                                      hn::Vec512<int32_t> c, hn::Vec512<int32_t> e) const {
    const auto low = _mm512_adds_epi16(_mm512_packs_epi32(a.raw, b.raw), zero_point_.raw);
    const auto high = _mm512_adds_epi16(_mm512_packs_epi32(c.raw, e.raw), zero_point_.raw);
    const auto bytes =
        std::is_signed_v<T> ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    const hn::ScalableTag<uint32_t> d;
    return hn::BitCast(hn::ScalableTag<uint8_t>(),
                       hn::TableLookupLanes(hn::Vec<decltype(d)>{bytes}, places_));
  }

  V inverse_, most_;
  hn::Vec512<int16_t> zero_point_;
  JoinBytes::Indices places_;
#else
  HWY_INLINE QuantizeBlock(float scale, int32_t zero_point)
      : inverse_(hn::Set(D(), 1 / scale)),
        least_(hn::Set(D(), static_cast<float>(kLow - zero_point))),
        most_(hn::Set(D(), static_cast<float>(kHigh - zero_point))),
        rounding_(hn::Set(D(), kRounding)),
        join_(std::bit_cast<uint32_t>(kRounding) + static_cast<uint32_t>(kLow - zero_point),
              kLow < 0) {}

 private:
  // Adding 1.5 2^23 rounds to an integer, which is in the low bits then.
  static constexpr float kRounding = 12582912.0f;

  // Sums whose low bits are the steps from zero. `doubt` has the largest distance from a step.
  HWY_INLINE V Rounded(const float* in, V* doubt) const {
    const auto quotient = hn::Mul(hn::LoadU(D(), in), inverse_);
    const auto bounded = hn::Min(StdMax(least_, quotient), most_);
    const auto rounded = hn::Add(bounded, rounding_);
    *doubt = hn::Max(*doubt, hn::Abs(hn::Sub(bounded, hn::Sub(rounded, rounding_))));
    return rounded;
  }

  HWY_INLINE hn::Vec<hn::ScalableTag<uint8_t> > Join(V a, V b, V c, V e) const {
    return join_(a, b, c, e);
  }

  V inverse_, least_, most_, rounding_;
  JoinBytes join_;
#endif
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
