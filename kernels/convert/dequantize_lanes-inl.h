// Integers with one scale as floats, in every lane.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_CONVERT_DEQUANTIZE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_CONVERT_DEQUANTIZE_LANES_INL_H_
#undef FUSELITE_KERNELS_CONVERT_DEQUANTIZE_LANES_INL_H_
#else
#define FUSELITE_KERNELS_CONVERT_DEQUANTIZE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// scale * (x - zero_point), with the bits of DEQUANTIZE: the difference is exact in float where
// values and zero point have 16 bits at most, so that the product is the one rounding.
class DequantizeLanes {
 public:
  DequantizeLanes() = default;
  HWY_INLINE DequantizeLanes(float scale, int32_t zero_point)
      : scale_(hn::Set(Real(), scale)), zero_point_(hn::Set(Wide(), zero_point)) {}

  // `x` has as many int8, uint8 or int16 as a vector has floats.
  template <class V>
  HWY_INLINE hn::Vec<hn::ScalableTag<float>> operator()(V x) const {
    const auto difference = hn::Sub(hn::PromoteTo(Wide(), x), zero_point_);
    return hn::Mul(hn::ConvertTo(Real(), difference), scale_);
  }

 private:
  using Real = hn::ScalableTag<float>;
  using Wide = hn::RebindToSigned<Real>;

  hn::Vec<Real> scale_;
  hn::Vec<Wide> zero_point_;
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
