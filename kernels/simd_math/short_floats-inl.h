// float16 and bfloat16 numbers (kernels/numbers/short_floats.h) as vectors of floats.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_SIMD_MATH_SHORT_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_SIMD_MATH_SHORT_FLOATS_INL_H_
#undef FUSELITE_KERNELS_SIMD_MATH_SHORT_FLOATS_INL_H_
#else
#define FUSELITE_KERNELS_SIMD_MATH_SHORT_FLOATS_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/numbers/short_floats.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Half-precision bits in the low half of each lane to floats: those of HalfToFloat.
template <class DF>
HWY_INLINE hn::Vec<DF> FloatOfHalf(DF df, hn::Vec<hn::RebindToSigned<DF>> half) {
  const hn::RebindToSigned<DF> d;
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000)));
  const auto magnitude = hn::And(half, hn::Set(d, 0x7FFF));
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, 112 << 23));
  // Infinities and NaNs: exponent 255 instead of 31 + 112.
  const auto special = hn::Add(normal, hn::Set(d, 112 << 23));
  const auto subnormal =
      hn::BitCast(d, hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, 0x1p-24f)));
  auto bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400)), subnormal, normal);
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7BFF)), special, bits);
  return hn::BitCast(df, hn::Or(bits, sign));
}

// Half-precision bits in the low half of each lane: what FloatToHalf gives. Subnormal numbers are
// multiples of 2^-24, to which adding 1/2 rounds.
template <class DF>
HWY_INLINE hn::Vec<hn::RebindToSigned<DF>> HalfOfFloat(DF df, hn::Vec<DF> x) {
  const hn::RebindToSigned<DF> d;
  const auto bits = hn::BitCast(d, x);
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFF));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(d, 0xFFF - (112 << 23))), odd));
  const auto subnormal =
      hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f))),
              hn::Set(d, 126 << 23));
  auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 113 << 23)), subnormal, normal);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477FEFFF)), hn::Set(d, 0x7C00), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 255 << 23)), hn::Set(d, 0x7E00), half);
  return hn::Or(half, sign);
}

// The first `n` numbers from `p`, zeros behind. Exact; NaNs stay NaNs.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadShortFloats(DF df, const Half* p, size_t n) {
  const hn::Rebind<uint16_t, DF> narrow;
  const auto bits = LoadUpTo(narrow, reinterpret_cast<const uint16_t*>(p), n);
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(df, hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), bits));
#else
  return FloatOfHalf(df, hn::PromoteTo(hn::RebindToSigned<DF>(), bits));
#endif
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadShortFloats(DF df, const BFloat16* p, size_t n) {
  const hn::Rebind<uint16_t, DF> narrow;
  const hn::RebindToUnsigned<DF> wide;
  const auto bits = LoadUpTo(narrow, reinterpret_cast<const uint16_t*>(p), n);
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

// As many numbers as the vector has lanes, and `n` of them with zeros behind: of float32 or of a
// shorter type.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const float* p) {
  return hn::LoadU(df, p);
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const BFloat16* p) {
  const hn::Rebind<uint16_t, DF> narrow;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<DF>(), bits)));
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const float* p, size_t n) {
  return LoadPartial(df, p, n);
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const BFloat16* p, size_t n) {
  return LoadShortFloats(df, p, n);
}

// Writes the first `n` lanes, rounded to the nearest, ties to even; NaNs stay NaNs.
template <class DF>
HWY_INLINE void StoreShortFloats(DF df, hn::Vec<DF> v, Half* p, size_t n) {
  const hn::Rebind<uint16_t, DF> narrow;
#if HWY_TARGET <= HWY_AVX2
  const auto bits = hn::BitCast(narrow, hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), v));
#else
  const auto bits = hn::DemoteTo(narrow, HalfOfFloat(df, v));
#endif
  (void)df;
  StoreUpTo(bits, narrow, reinterpret_cast<uint16_t*>(p), n);
}
template <class DF>
HWY_INLINE void StoreShortFloats(DF df, hn::Vec<DF> v, BFloat16* p, size_t n) {
  const hn::Rebind<uint16_t, DF> narrow;
  const hn::RebindToUnsigned<DF> wide;
  const hn::RebindToSigned<DF> lanes;
  const auto bits = hn::BitCast(wide, v);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(wide, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(wide, 0x7FFF)), odd));
  const auto quiet = hn::Or(high, hn::Set(wide, 0x40));
  const auto is_nan = hn::RebindMask(wide, hn::IsNaN(v));
  const auto kept = hn::BitCast(lanes, hn::IfThenElse(is_nan, quiet, rounded));
  (void)df;
  StoreUpTo(hn::DemoteTo(narrow, kept), narrow, reinterpret_cast<uint16_t*>(p), n);
}

// The first `n` lanes, rounded where the type is shorter.
template <class DF>
HWY_INLINE void StoreFloats(DF df, hn::Vec<DF> v, float* p, size_t n) {
  StoreUpTo(v, df, p, n);
}
template <class DF>
HWY_INLINE void StoreFloats(DF df, hn::Vec<DF> v, BFloat16* p, size_t n) {
  StoreShortFloats(df, v, p, n);
}

// T(v) as a float, as if it were stored and loaded.
template <class T, class DF>
HWY_INLINE hn::Vec<DF> RoundedToShort(DF df, hn::Vec<DF> v) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, Half>) {
    return hn::PromoteTo(df, hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), v));
  }
#endif
  HWY_ALIGN T memory[hn::MaxLanes(df)];
  StoreShortFloats(df, v, memory, hn::Lanes(df));
  return LoadShortFloats(df, memory, hn::Lanes(df));
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
