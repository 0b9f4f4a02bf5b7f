// Runs of floats to integers: round(x / scale) + zero_point, halves away from zero.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_CONVERT_QUANTIZE_RUN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_CONVERT_QUANTIZE_RUN_INL_H_
#undef FUSELITE_KERNELS_CONVERT_QUANTIZE_RUN_INL_H_
#else
#define FUSELITE_KERNELS_CONVERT_QUANTIZE_RUN_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/convert/quantize_block-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// round(x / scale) + zero_point in [low, high] as int32; D has any number of lanes. The bounds are
// those that leave the rounded quotient in range, the lower one also for a NaN.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> QuantizeVector(D d, hn::Vec<D> x, float scale,
                                                         int32_t zero_point, int32_t low,
                                                         int32_t high) {
  const hn::RebindToSigned<D> di;
  const auto least = hn::Set(d, static_cast<float>(low - zero_point));
  const auto most = hn::Set(d, static_cast<float>(high - zero_point));
  const auto quotient = hn::Div(x, hn::Set(d, scale));
  const auto bounded = hn::Min(hn::IfThenElse(hn::Gt(quotient, least), quotient, least), most);
  // Half away from zero: 0.49999997, the largest float below 1/2, carries exactly the halves over,
  // up to the 2^17 that bounds of 16 bits allow.
  const auto half = hn::CopySign(hn::Set(d, 0.49999997f), bounded);
  return hn::Add(TruncatedInRange(hn::Add(bounded, half)), hn::Set(di, zero_point));
}

template <class T>
void QuantizeRun(const float* in, T* out, size_t count, float scale, int32_t zero_point) {
  constexpr int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> narrow;
  ForVectors(d, count, [&](size_t i, size_t n) FUSELITE_INLINED {
    const auto v = QuantizeVector(d, LoadUpTo(d, in + i, n), scale, zero_point, kLow, kHigh);
    StoreUpTo(hn::DemoteTo(narrow, v), narrow, out + i, n);
  });
}

// QuantizeRun for bytes, a block at a time by the scale's reciprocal, where a product takes a tenth
// of a quotient's time. A block that may round differently is divided: one in a hundred.
template <class T>
HWY_INLINE void QuantizeByReciprocal(const float* in, T* out, size_t count, float scale,
                                     int32_t zero_point) {
  const QuantizeBlock<T> quantize(scale, zero_point);
  const size_t block = quantize.size();
  if (count < block) return QuantizeRun(in, out, count, scale, zero_point);
  const auto some = [&](size_t i) HWY_ATTR {
    if (HWY_UNLIKELY(!quantize(in + i, out + i))) {
      QuantizeRun(in + i, out + i, block, scale, zero_point);
    }
  };
  for (size_t i = 0; i + block <= count; i += block) some(i);
  // What is left over is computed with some of what comes before it.
  if (count % block != 0) some(count - block);
}

template <class T>
void QuantizeToBytes(const float* in, T* out, int64_t n, float scale, int32_t zero_point) {
  if (QuantizeBlock<T>::Takes(scale, zero_point)) {
    return QuantizeByReciprocal(in, out, n, scale, zero_point);
  }
  QuantizeRun(in, out, n, scale, zero_point);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
