// A block of queries of one head, as the vector code of attention takes it.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "runtime/cpu/isa.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {

struct AttentionBlock {
  // 32 x 200 scores are 25 KiB.
  static constexpr int kMaxRows = 32;

  int64_t rows;
  int64_t keys;  // the first of all, as many as these queries see
  float scale;
  float logit_cap;  // 0: none
  bool hidden_is_zero;
  struct Mask {
    const float* rows[kMaxRows];
    int step;  // 0: one value for the whole row
  };
  int mask_count;
  Mask masks[AttentionShape::kMaxMasks];
  float* scores;  // [rows, keys]
  int64_t pitch;  // values from one row of scores to the next

  void Take(const AttentionParams& params) {
    scale = params.score_scale();
    logit_cap = params.logit_cap;
    hidden_is_zero = params.hidden_is_zero;
  }
  // Notes where the masks' rows for block row `r` lie.
  void PointAtMasks(const AttentionShape& shape, const KernelArgs& args, int64_t r, int64_t batch,
                    int64_t head, int64_t query) {
    mask_count = shape.mask_count;
    for (int m = 0; m < mask_count; ++m) {
      masks[m].rows[r] = shape.MaskRow(args, m, batch, head, query);
      masks[m].step = shape.masks[m].channel_step;
    }
  }
};

// The values from one row of scores to the next. Rows begin with a line of the cache, so that no
// vector lies in two, which took 2% of ViT-tiny's attention (197 keys), and not all with the same
// set of it.
constexpr int64_t ScorePitch(int64_t keys) {
  constexpr int64_t kLine = 64 / sizeof(float), kSets = 1024 / sizeof(float);
  const auto pitch = static_cast<int64_t>(AlignUp(keys * sizeof(float)) / sizeof(float));
  return pitch % kSets == 0 ? pitch + kLine : pitch;
}

// Turns a block's products into weights, row by row, which sum up to one as SOFTMAX's do: to divide
// the means instead, which are fewer, would round otherwise than the operators one by one.
using WeighScoresFunction = void(const AttentionBlock& block);
// to[i] = x[i] factor, for i < n. In place where to == x.
using ScaleFunction = void(const float* x, float factor, float* to, int64_t n);
// How many keys the block's rows see: behind them masks say kHiddenScore or less. All of `keys`
// where one of the rows sees none, but for those whose output is zero then.
using VisibleKeysFunction = int64_t(const AttentionBlock& block, int64_t keys);

// Rows of a cache of bytes as floats, `width` values each, which then follow each other. `step`:
// from one row of the cache to the next.
using WidenRowsFunction = void(const AttentionShape::Scaled& scaled, const int8_t* from,
                               int64_t step, int64_t rows, int64_t width, float* to);

// The vector code for an ISA; null below SSSE3.
struct AttentionFunctions {
  WeighScoresFunction* weigh = nullptr;
  ScaleFunction* scale = nullptr;
  VisibleKeysFunction* visible = nullptr;
  WidenRowsFunction* widen = nullptr;
};
AttentionFunctions FindAttentionFunctions(Isa isa);

}  // namespace fuselite::kernels
