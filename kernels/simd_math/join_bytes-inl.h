// Four vectors of small integers in 32-bit lanes as one vector of bytes, in order.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_JOIN_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_JOIN_BYTES_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_JOIN_BYTES_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_JOIN_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes hold base + u with u in [0, 255]; bytes are u, or u - 128 as int8 where `is_signed`. Three
// shifts and sums put four bytes into a lane, whatever the base, and two shuffles order them.
class JoinBytes {
 public:
  using Words = hn::ScalableTag<uint32_t>;
  using Bytes = hn::ScalableTag<uint8_t>;
  using Indices = decltype(hn::SetTableIndices(Words(), static_cast<const uint32_t*>(nullptr)));

  HWY_INLINE JoinBytes(uint32_t base, bool is_signed)
      : base_(hn::Set(Words(), base * 0x01010101u)),
        sign_(hn::Set(Bytes(), is_signed ? uint8_t{0x80} : uint8_t{0})),
        places_(Places()) {
    HWY_ALIGN uint8_t transposed[16];
    for (size_t i = 0; i < 16; ++i) transposed[i] = static_cast<uint8_t>(i % 4 * 4 + i / 4);
    within_blocks_ = hn::LoadDup128(Bytes(), transposed);
  }

  template <class V>  // of int32, uint32 or float
  HWY_INLINE hn::Vec<Bytes> operator()(V v0, V v1, V v2, V v3) const {
    const Words d;
    const auto low = hn::Add(hn::BitCast(d, v0), hn::ShiftLeft<8>(hn::BitCast(d, v1)));
    const auto high =
        hn::Add(hn::ShiftLeft<16>(hn::BitCast(d, v2)), hn::ShiftLeft<24>(hn::BitCast(d, v3)));
    const auto bytes = hn::BitCast(Bytes(), hn::Sub(hn::Add(low, high), base_));
    const auto words = hn::TableLookupBytes(hn::Xor(bytes, sign_), within_blocks_);
    return hn::BitCast(Bytes(), hn::TableLookupLanes(hn::BitCast(d, words), places_));
  }

  // Word k of block b goes to word b of quarter k.
  static HWY_INLINE Indices Places() {
    const Words d;
    HWY_ALIGN uint32_t from[hn::MaxLanes(d)];
    const size_t blocks = hn::Lanes(d) / 4;
    for (size_t i = 0; i < 4 * blocks; ++i) {
      from[i] = static_cast<uint32_t>(i % blocks * 4 + i / blocks);
    }
    return hn::SetTableIndices(d, from);
  }

 private:
  hn::Vec<Words> base_;
  hn::Vec<Bytes> sign_, within_blocks_;
  Indices places_;
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
