#include "kernels/detection/best_label.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/detection/best_label.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
int32_t BestLabelVector(const T* scores, int32_t count) {
  const hn::ScalableTag<T> d;
  const auto n = static_cast<size_t>(count);
  const auto first = hn::Set(d, scores[0]);
  // What is behind the scores counts as the first of them. Where that is a NaN, it stays.
  const auto load = [&](size_t i, size_t valid) HWY_ATTR {
    // FirstN compares lanes' numbers in their own type, which 128 does not fit.
    const auto there = hn::FirstN(d, std::min(valid, hn::Lanes(d)));
    return hn::IfThenElse(there, LoadUpTo(d, scores + i, valid), first);
  };
  auto best = first;
  ForVectors(d, n, [&](size_t i, size_t valid) HWY_ATTR {
    const auto x = load(i, valid);
    best = hn::IfThenElse(hn::Gt(x, best), x, best);
  });
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(best, d, lanes);
  T greatest = lanes[0];
  for (size_t lane = 1; lane < hn::Lanes(d); ++lane) {
    if (lanes[lane] > greatest) greatest = lanes[lane];
  }
  const auto wanted = hn::Set(d, greatest);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(load(i, n - i), wanted));
    if (at >= 0) return static_cast<int32_t>(i + static_cast<size_t>(at));
  }
  return 0;  // a NaN
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
