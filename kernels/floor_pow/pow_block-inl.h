// x ^ y of float32 as 2 ^ (y log2 x) in double precision: within a last bit of the exact power.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_FLOOR_POW_POW_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_FLOOR_POW_POW_BLOCK_INL_H_
#undef FUSELITE_KERNELS_FLOOR_POW_POW_BLOCK_INL_H_
#else
#define FUSELITE_KERNELS_FLOOR_POW_POW_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PowDoubles = hn::ScalableTag<double>;
using PowFloats = hn::Rebind<float, PowDoubles>;

// c[0] + x (c[1] + x (c[2] + ...)).
template <size_t kTerms>
HWY_INLINE hn::Vec<PowDoubles> PowSeries(hn::Vec<PowDoubles> x, const double (&c)[kTerms]) {
  auto sum = hn::Set(PowDoubles(), c[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(PowDoubles(), c[i]));
  return sum;
}

// Binary logarithms of numbers that are not negative, infinite or NaN. With x = 2^e m, m in
// [sqrt(1/2), sqrt(2)), and s = (m - 1) / (m + 1), log2 m is
// 2 / ln 2 (s + s^3 / 3 + s^5 / 5 + ...), whose tenth term is below 2^-49. Zero has a logarithm
// that any power but the zeroth takes out of range.
HWY_INLINE hn::Vec<PowDoubles> Log2(hn::Vec<PowFloats> x) {
  const PowFloats df;
  const PowDoubles dd;
  const hn::RebindToSigned<PowFloats> di;
  constexpr double kFactor = 2.8853900817779268;  // 2 / ln 2
  constexpr double kTerms[] = {kFactor,      kFactor / 3,  kFactor / 5,  kFactor / 7, kFactor / 9,
                               kFactor / 11, kFactor / 13, kFactor / 15, kFactor / 17};
  const auto small = hn::Lt(x, hn::Set(df, std::numeric_limits<float>::min()));
  const auto bits = hn::BitCast(di, hn::IfThenElse(small, hn::Mul(x, hn::Set(df, 0x1p23f)), x));
  const auto sqrt_half = hn::Set(di, std::bit_cast<int32_t>(0.70710678f));
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, sqrt_half));
  const auto m = hn::PromoteTo(dd, hn::BitCast(df, hn::Sub(bits, hn::ShiftLeft<23>(exponent))));
  const auto moved = hn::IfThenElseZero(hn::RebindMask(di, small), hn::Set(di, 23));
  const auto one = hn::Set(dd, 1.0);
  const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const auto whole = hn::PromoteTo(dd, hn::Sub(exponent, moved));
  const auto log = hn::MulAdd(PowSeries(hn::Mul(s, s), kTerms), s, whole);
  return hn::IfThenElse(hn::Eq(hn::PromoteTo(dd, x), hn::Zero(dd)), hn::Set(dd, -1e300), log);
}

// 2^n e^(r ln 2), n whole and |r| <= 1/2: the series' eleventh term is below 2^-36.
HWY_INLINE hn::Vec<PowFloats> Exp2(hn::Vec<PowDoubles> x) {
  const PowDoubles dd;
  const hn::RebindToUnsigned<PowDoubles> du;
  constexpr double kTerms[] = {1,        1,        1. / 2,    1. / 6,     1. / 24,
                               1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880};
  const auto beyond_floats = hn::Set(dd, 200.0), rounding = hn::Set(dd, 0x1.8p52);
  const auto bounded = hn::Max(hn::Min(x, beyond_floats), hn::Neg(beyond_floats));
  const auto shifted = hn::Add(bounded, rounding);  // the whole part is in the low bits
  const auto r = hn::Sub(bounded, hn::Sub(shifted, rounding));
  const auto power = PowSeries(hn::Mul(r, hn::Set(dd, 0.69314718055994531)), kTerms);
  const auto scale = hn::ShiftLeft<52>(hn::BitCast(du, shifted));
  const auto scaled = hn::BitCast(dd, hn::Add(hn::BitCast(du, power), scale));
  return hn::DemoteTo(PowFloats(), scaled);
}

// x ^ y, neither infinite nor NaN, x not -0: of a negative number only for whole y, else NaN.
HWY_INLINE hn::Vec<PowFloats> Pow(hn::Vec<PowFloats> x, hn::Vec<PowFloats> y) {
  const PowFloats df;
  const auto power = Exp2(hn::Mul(Log2(hn::Abs(x)), hn::PromoteTo(PowDoubles(), y)));
  const auto half = hn::Mul(y, hn::Set(df, 0.5f));
  const auto sign = hn::IfThenElseZero(hn::Ne(hn::Round(half), half), hn::Set(df, -0.0f));
  const auto nan = hn::Set(df, std::numeric_limits<float>::quiet_NaN());
  const auto of_negative = hn::IfThenElse(hn::Eq(hn::Round(y), y), hn::Xor(power, sign), nan);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(df)), of_negative, power);
}

// Whether the base is infinite, NaN or -0, or the exponent infinite or NaN.
HWY_INLINE auto IsRare(hn::Vec<PowFloats> base, hn::Vec<PowFloats> exponent) {
  const hn::RebindToSigned<PowFloats> di;
  const auto most = hn::Set(di, std::bit_cast<int32_t>(std::numeric_limits<float>::max()));
  const auto minus_zero = hn::Set(di, std::bit_cast<int32_t>(-0.0f));
  const auto beyond = hn::Or(hn::Gt(hn::BitCast(di, hn::Abs(base)), most),
                             hn::Gt(hn::BitCast(di, hn::Abs(exponent)), most));
  return hn::Or(beyond, hn::Eq(hn::BitCast(di, base), minus_zero));
}

constexpr int64_t kPowBlock = 256;

// n <= kPowBlock powers of x[i * x_stride] by y[i * y_stride]. `out` may be x or y.
HWY_INLINE void PowBlock(const float* x, int64_t x_stride, const float* y, int64_t y_stride,
                         float* out, int64_t n) {
  const PowFloats df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  HWY_ALIGN float power[kPowBlock];
  HWY_ALIGN float bases[kPowBlock];
  HWY_ALIGN float exponents[kPowBlock];
  for (int64_t i = 0; i < n; ++i) bases[i] = x[i * x_stride];
  for (int64_t i = 0; i < n; ++i) exponents[i] = y[i * y_stride];
  for (int64_t i = n; i % lanes != 0; ++i) bases[i] = exponents[i] = 1;
  bool rare = false;
  for (int64_t i = 0; i < n; i += lanes) {
    const auto base = hn::Load(df, bases + i), exponent = hn::Load(df, exponents + i);
    hn::Store(Pow(base, exponent), df, power + i);
    rare |= !hn::AllFalse(hn::RebindToSigned<PowFloats>(), IsRare(base, exponent));
  }
  for (int64_t i = 0; rare && i < n; ++i) {
    const bool minus_zero = bases[i] == 0 && std::signbit(bases[i]);
    if (minus_zero || !std::isfinite(bases[i]) || !std::isfinite(exponents[i])) {
      power[i] = std::pow(bases[i], exponents[i]);
    }
  }
  std::copy_n(power, n, out);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
