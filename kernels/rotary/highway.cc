#include "kernels/rotary/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Rotate(const float* x, const float* cos, const float* sin, int64_t half, int64_t second,
            float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < half; i += lanes) {
    const auto left = static_cast<size_t>(std::min(lanes, half - i));
    const auto a = LoadUpTo(d, x + i, left), b = LoadUpTo(d, x + i + half, left);
    const auto c0 = LoadUpTo(d, cos + i, left), s0 = LoadUpTo(d, sin + i, left);
    const auto c1 = second == 0 ? c0 : LoadUpTo(d, cos + i + second, left);
    const auto s1 = second == 0 ? s0 : LoadUpTo(d, sin + i + second, left);
    StoreUpTo(hn::Sub(hn::Mul(a, c0), hn::Mul(b, s0)), d, y + i, left);
    StoreUpTo(hn::Add(hn::Mul(b, c1), hn::Mul(a, s1)), d, y + i + half, left);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildRotaryHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  constexpr auto kRotate = FUSELITE_SIMD_TABLE(Rotate);
  FUSELITE_ASSIGN_OR_RETURN(auto* const rotate, kRotate.Require(context.isa));
  return MakeRotary(std::string("rotary f32 ") + SimdName(context.isa), op, rotate);
}

}  // namespace fuselite::kernels
#endif
