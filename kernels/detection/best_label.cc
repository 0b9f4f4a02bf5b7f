#include "kernels/detection/best_label.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/detection/best_label.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/arg_max/long_row-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

template <class T>
int32_t BestLabelVector(const T* scores, int32_t count) {
  if (scores[0] != scores[0]) return 0;  // Nothing is greater than a NaN in the first place.
  return static_cast<int32_t>(ArgOfLongRow<T, true>(scores, count));
}

constexpr BestLabelFunctions kBestLabel = {BestLabelVector<float>, BestLabelVector<uint8_t>};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <class T>
int32_t BestLabelPlain(const T* scores, int32_t count) {
  int32_t best = 0;
  for (int32_t i = 1; i < count; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

}  // namespace

const BestLabelFunctions& PlainBestLabel() {
  static constexpr BestLabelFunctions kPlain = {BestLabelPlain<float>, BestLabelPlain<uint8_t>};
  return kPlain;
}

const BestLabelFunctions* FindBestLabel(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kBestLabel);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
