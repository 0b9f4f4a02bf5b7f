// What becomes of the scores of a block of queries: scale, cap, masks, softmax.
#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/scores.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/convert/dequantize_lanes-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// x[i] = scale x[i] + mask[i step], rounded one by one as MUL and ADD are; returns the largest.
// Precondition: n > 0.
HWY_INLINE float ScaleAndMask(float* row, size_t n, float scale, const float* mask, int step) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  // Without a mask what is added changes nothing but the sign of a zero.
  const auto same = hn::Set(d, mask != nullptr && step == 0 ? *mask : 0.0f);
  const bool each = mask != nullptr && step != 0;
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x =
        hn::Add(hn::Mul(hn::LoadU(d, row + i), factor), each ? hn::LoadU(d, mask + i) : same);
    largest = hn::Max(largest, x);
    hn::StoreU(x, d, row + i);
  }
  if (i < n) {
    const auto x = hn::Add(hn::Mul(LoadPartial(d, row + i, n - i), factor),
                           each ? LoadPartial(d, mask + i, n - i) : same);
    largest = hn::IfThenElse(hn::FirstN(d, n - i), hn::Max(largest, x), largest);
    StorePartial(x, d, row + i, n - i);
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

HWY_INLINE void CapScores(float* row, size_t n, float scale, float cap) {
  const D d;
  RowMap(row, row, n, [&](auto x) HWY_ATTR {
    const auto scaled = hn::Mul(x, hn::Set(d, scale));
    return hn::Mul(VecTanh(d, hn::Div(scaled, hn::Set(d, cap))), hn::Set(d, cap));
  });
}

// The largest of a row's scores once they are scaled, capped and masked; scores that are not
// touched but by the scale wait for it until they are exponents.
HWY_INLINE float FinishScores(const AttentionBlock& b, int64_t r, bool plain) {
  const auto keys = static_cast<size_t>(b.keys);
  float* const scores = b.scores + r * b.pitch;
  if (plain) return RowMax(scores, keys);
  const bool capped = b.logit_cap > 0;
  if (capped) CapScores(scores, keys, b.scale, b.logit_cap);
  const float scale = capped ? 1.0f : b.scale;
  if (b.mask_count == 0) return ScaleAndMask(scores, keys, scale, nullptr, 0);
  float most = ScaleAndMask(scores, keys, scale, b.masks[0].rows[r], b.masks[0].step);
  for (int m = 1; m < b.mask_count; ++m) {
    most = ScaleAndMask(scores, keys, 1.0f, b.masks[m].rows[r], b.masks[m].step);
  }
  return most;
}

void ScaleQueries(const float* x, float factor, float* to, int64_t n) {
  ScaleRow(x, to, static_cast<size_t>(n), factor);
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

// Whether the last mask hides all of `keys` keys from row `r`, whose output is zero then.
HWY_INLINE bool IsZero(const AttentionBlock& b, int64_t r, int64_t keys) {
  if (!b.hidden_is_zero) return false;
  const AttentionBlock::Mask& last = b.masks[b.mask_count - 1];
  return VisibleEnd(last.rows[r], last.step == 0 ? 1 : keys) == 0;
}

void WeighScores(const AttentionBlock& b) {
  const auto keys = static_cast<size_t>(b.keys);
  const bool plain = b.mask_count == 0 && b.logit_cap <= 0 && b.scale > 0;
  float most[AttentionBlock::kMaxRows];
  for (int64_t r = 0; r < b.rows; ++r) most[r] = FinishScores(b, r, plain);
  SoftmaxBelow(most, {b.scores, b.pitch, b.rows}, {b.scores, b.pitch}, keys,
               plain ? b.scale : 1.0f);
  for (int64_t r = 0; r < b.rows; ++r) {
    if (IsZero(b, r, b.keys)) std::fill_n(b.scores + r * b.pitch, keys, 0.0f);
  }
}

int64_t VisibleKeys(const AttentionBlock& b, int64_t keys) {
  int64_t visible = 0;
  for (int64_t r = 0; r < b.rows; ++r) {
    if (IsZero(b, r, keys)) continue;
    int64_t end = keys;
    for (int m = 0; m < b.mask_count; ++m) {
      if (b.masks[m].step != 0) end = VisibleEnd(b.masks[m].rows[r], end);
    }
    if (end == 0 || end == keys) return keys;
    visible = std::max(visible, end);
  }
  return visible;
}

void WidenRows(const AttentionShape::Scaled& scaled, const int8_t* from, int64_t step, int64_t rows,
               int64_t width, float* to) {
  const D d;
  const hn::Rebind<int8_t, D> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const DequantizeLanes real(scaled.scale, scaled.zero_point);
  for (int64_t r = 0; r < rows; ++r, from += step, to += width) {
    for (int64_t i = 0; i < width; i += lanes) {
      const auto left = static_cast<size_t>(width - i);
      StoreUpTo(real(LoadUpTo(narrow, from + i, left)), d, to + i, left);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

AttentionFunctions FindAttentionFunctions(Isa isa) {
  static constexpr auto kWeigh = FUSELITE_SIMD_TABLE(WeighScores);
  static constexpr auto kScale = FUSELITE_SIMD_TABLE(ScaleQueries);
  static constexpr auto kVisible = FUSELITE_SIMD_TABLE(VisibleKeys);
  static constexpr auto kWiden = FUSELITE_SIMD_TABLE(WidenRows);
  return {kWeigh.For(isa), kScale.For(isa), kVisible.For(isa), kWiden.For(isa)};
}

}  // namespace fuselite::kernels
#endif
