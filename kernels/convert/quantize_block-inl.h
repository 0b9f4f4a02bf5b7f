// Four vectors of floats to bytes: round(x / scale) + zero_point, halves away from zero, by the
// scale's reciprocal.
//
// x / scale + zero_point + 1/2 is computed with 16 bits behind the point: its whole part is the
// result. Of the last of these bits, the reciprocal counts for an error of 1, as each of at most
// 2^8 steps has 2^16 of them in a float's 2^24; the product, the sum, the conversion to integers
// and the quotient that the reference rounds count for a half each: 3 in all. Whether the whole
// part is in doubt, a half's among them, is seen from the bits behind the point.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_
#undef FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_
#else
#define FUSELITE_KERNELS_CONVERT_QUANTIZE_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/pack_bytes-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// T: int8_t or uint8_t.
template <class T>
class QuantizeBlock {
  using D = hn::ScalableTag<float>;
  using Words = hn::ScalableTag<int32_t>;
  using Shorts = hn::ScalableTag<int16_t>;
  using Bytes = hn::ScalableTag<T>;
  static constexpr int32_t kLow = std::numeric_limits<T>::min(),
                           kHigh = std::numeric_limits<T>::max();
  static constexpr int32_t kError = 3, kOne = 1 << 16;

 public:
  // Whether the reciprocal has its full precision, and steps are as few as the error supposes.
  static bool Takes(float scale, int32_t zero_point) {
    return scale > 0x1p-100f && scale < 0x1p100f && kLow <= zero_point && zero_point <= kHigh;
  }
  // Floats of a block.
  static size_t size() { return 4 * hn::Lanes(D()); }

  HWY_INLINE QuantizeBlock(float scale, int32_t zero_point)
      : factor_(hn::Set(D(), kOne / scale)),
        addend_(hn::Set(D(), static_cast<float>(zero_point * kOne + kOne / 2 + kError))) {
    HWY_ALIGN int8_t within[16];
    for (int i = 0; i < 16; ++i) within[i] = static_cast<int8_t>(i / 8 * 8 + i % 4 * 2 + i / 4 % 2);
    within_blocks_ = hn::LoadDup128(hn::ScalableTag<int8_t>(), within);
    HWY_ALIGN int32_t from[hn::MaxLanes(Words())];
    const size_t blocks = hn::Lanes(Words()) / 4;
    for (size_t i = 0; i < 4 * blocks; ++i) {
      from[i] = static_cast<int32_t>(i % blocks * 4 + i / blocks);
    }
    places_ = hn::SetTableIndices(Words(), from);
  }

  // False, with nothing written, where a value is in doubt. So are NaNs and the far too small.
  HWY_INLINE bool operator()(const float* in, T* out) const {
    const size_t lanes = hn::Lanes(D());
    const auto a = Steps(in), b = Steps(in + lanes);
    const auto c = Steps(in + 2 * lanes), e = Steps(in + 3 * lanes);
    const hn::ScalableTag<uint16_t> d;
    const auto fraction = hn::Min(hn::BitCast(d, Fractions(a, b)), hn::BitCast(d, Fractions(c, e)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Gt(fraction, hn::Set(d, 2 * kError))))) return false;
    const auto bytes = PackBytes(Bytes(), Wholes(a, b), Wholes(c, e));
    const auto words = hn::BitCast(Words(), hn::TableLookupBytes(bytes, within_blocks_));
    hn::StoreU(hn::BitCast(Bytes(), hn::TableLookupLanes(words, places_)), Bytes(), out);
    return true;
  }

 private:
  // Above the sum by at most 2 kError, where that has no more bits than a float. What has more is
  // beyond the type's steps, and is packed to the last of them. A NaN, and what is beyond integers,
  // becomes the lowest of them (or 0), whose fraction is in doubt; on aarch64 what is above becomes
  // the highest, which is packed to the last step.
  HWY_INLINE hn::Vec<Words> Steps(const float* in) const {
    return NearestInRange(hn::MulAdd(hn::LoadU(D(), in), factor_, addend_));
  }

  // The parts of a in the even lanes and of b in the odd ones.
  static HWY_INLINE hn::Vec<Shorts> Wholes(hn::Vec<Words> a, hn::Vec<Words> b) {
    return hn::OddEven(hn::BitCast(Shorts(), b), hn::BitCast(Shorts(), hn::ShiftRight<16>(a)));
  }
  static HWY_INLINE hn::Vec<Shorts> Fractions(hn::Vec<Words> a, hn::Vec<Words> b) {
    return hn::OddEven(hn::BitCast(Shorts(), hn::ShiftLeft<16>(b)), hn::BitCast(Shorts(), a));
  }

  hn::Vec<D> factor_, addend_;
  hn::Vec<hn::ScalableTag<int8_t> > within_blocks_;
  decltype(hn::SetTableIndices(Words(), static_cast<const int32_t*>(nullptr))) places_;
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
