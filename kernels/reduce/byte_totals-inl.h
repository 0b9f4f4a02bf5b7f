// From totals of bytes, which were read `flip` higher, to outputs.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_REDUCE_BYTE_TOTALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_REDUCE_BYTE_TOTALS_INL_H_
#undef FUSELITE_KERNELS_REDUCE_BYTE_TOTALS_INL_H_
#else
#define FUSELITE_KERNELS_REDUCE_BYTE_TOTALS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/reduce/byte_columns-inl.h"
#include "kernels/reduce/byte_reduction.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rescale, of sums of bytes that were read `flip` higher.
HWY_INLINE void RescaleSums(const Rescale& r, const uint32_t* sums, uint8_t* out, uint8_t flip,
                            int64_t terms, size_t n) {
  const UniformScale::D d;
  const hn::Rebind<uint8_t, UniformScale::D> narrow;
  const UniformScale scale(r.multiplier, r.shift);
  const auto zero_points = hn::Set(d, static_cast<int32_t>(r.input_zero_points + flip * terms));
  const auto zero_point = hn::Set(d, r.zero_point);
  const auto min = hn::Set(d, r.min), max = hn::Set(d, r.max);
  const auto low_byte = hn::Set(hn::RebindToUnsigned<UniformScale::D>(), 0xFF);
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const auto sum = hn::LoadU(d, reinterpret_cast<const int32_t*>(sums) + i);
    const auto scaled = hn::Add(scale(hn::Sub(sum, zero_points)), zero_point);
    const auto clamped = hn::Min(hn::Max(scaled, min), max);
    const auto bytes = hn::BitCast(
        d, hn::And(hn::BitCast(hn::RebindToUnsigned<UniformScale::D>(), clamped), low_byte));
    StoreUpTo(hn::DemoteTo(narrow, bytes), narrow, out + i, n - i);
  }
}

HWY_INLINE void FlipTo(const uint8_t* totals, uint8_t flip, uint8_t* out, size_t n) {
  const ByteTag d;
  const auto sign = hn::Set(d, flip);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    StoreUpTo(hn::Xor(hn::Load(d, totals + i), sign), d, out + i, n - i);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
