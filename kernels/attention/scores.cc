// What becomes of the scores of a block of queries: scale, cap, mask, softmax.
#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/scores.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/simd.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// y[i] = scale x[i] + mask[i step], rounded one by one as MUL and ADD are.
HWY_INLINE void ScaleAndMask(float* row, size_t n, float scale, const float* mask, int step) {
  const D d;
  const auto factor = hn::Set(d, scale);
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = std::min(lanes, n - i);
    auto x = hn::Mul(LoadUpTo(d, row + i, count), factor);
    if (mask != nullptr) {
      x = hn::Add(x, step == 0 ? hn::Set(d, *mask) : LoadUpTo(d, mask + i, count));
    }
    StoreUpTo(x, d, row + i, count);
  }
}

HWY_INLINE void CapScores(float* row, size_t n, float scale, float cap) {
  const D d;
  RowMap(row, row, n, [&](auto x) HWY_ATTR {
    const auto scaled = hn::Mul(x, hn::Set(d, scale));
    return hn::Mul(VecTanh(d, hn::Div(scaled, hn::Set(d, cap))), hn::Set(d, cap));
  });
}

void NormalizeScores(const AttentionBlock& b) {
  for (int64_t r = 0; r < b.rows; ++r) {
    float* scores = b.scores + r * b.keys;
    if (b.logit_cap > 0) CapScores(scores, b.keys, b.scale, b.logit_cap);
    const float scale = b.logit_cap > 0 ? 1.0f : b.scale;
    const bool masked = b.masks[r] != nullptr;
    // Without a mask the softmax scales, in the pass that it makes anyway.
    const bool scales = !masked && scale > 0;
    if (masked || (!scales && scale != 1.0f)) {
      ScaleAndMask(scores, b.keys, scale, b.masks[r], b.mask_step);
    }
    SoftmaxRow(scores, scores, b.keys, scales ? scale : 1.0f);
  }
}

// The index behind the last value above kHiddenScore; 0 where there is none.
HWY_INLINE int64_t VisibleEnd(const float* mask, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto hidden = hn::Set(d, kHiddenScore);
  // A NaN is not hidden.
  while (n >= lanes && hn::AllTrue(d, hn::Le(hn::LoadU(d, mask + n - lanes), hidden))) n -= lanes;
  while (n > 0 && mask[n - 1] <= kHiddenScore) --n;
  return n;
}

int64_t VisibleKeys(const AttentionBlock& b, int64_t keys) {
  if (b.masks[0] == nullptr || b.mask_step == 0) return keys;
  int64_t visible = 0;
  for (int64_t r = 0; r < b.rows; ++r) {
    const int64_t end = VisibleEnd(b.masks[r], keys);
    if (end == 0) return keys;
    visible = std::max(visible, end);
  }
  return visible;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

AttentionFunctions FindAttentionFunctions(Isa isa) {
  static constexpr auto kNormalize = FUSELITE_SIMD_TABLE(NormalizeScores);
  static constexpr auto kVisible = FUSELITE_SIMD_TABLE(VisibleKeys);
  return {kNormalize.For(isa), kVisible.For(isa)};
}

}  // namespace fuselite::kernels
#endif
