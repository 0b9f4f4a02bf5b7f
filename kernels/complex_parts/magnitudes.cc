#include "kernels/complex_parts/magnitudes.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/complex_parts/magnitudes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Squares of floats are exact in double; their sum's root, rounded to double and then to float, is
// what C libraries give. An infinity beside a NaN counts.
template <class D>
HWY_INLINE void MagnitudesAt(D d, const float* parts, float* out) {
  const hn::Rebind<double, D> wide;
  hn::Vec<D> re, im;
  hn::LoadInterleaved2(d, parts, re, im);
  const auto x = hn::PromoteTo(wide, re), y = hn::PromoteTo(wide, im);
  const auto magnitude = hn::DemoteTo(d, hn::Sqrt(hn::Add(hn::Mul(x, x), hn::Mul(y, y))));
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto is_infinite = hn::Or(hn::Eq(hn::Abs(re), infinity), hn::Eq(hn::Abs(im), infinity));
  hn::StoreU(hn::IfThenElse(is_infinite, infinity, magnitude), d, out);
}

void MagnitudesVector(const std::complex<float>* x, float* out, int64_t n) {
  // As many as there are doubles in a vector.
  const hn::Rebind<float, hn::ScalableTag<double>> d;
  const auto* parts = reinterpret_cast<const float*>(x);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) MagnitudesAt(d, parts + 2 * i, out + i);
  for (; i < n; ++i) MagnitudesAt(hn::CappedTag<float, 1>(), parts + 2 * i, out + i);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

MagnitudesFunction* FindMagnitudes(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(MagnitudesVector);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
