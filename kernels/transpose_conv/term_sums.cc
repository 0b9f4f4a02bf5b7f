#include "kernels/transpose_conv/term_sums.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/transpose_conv/term_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Two vectors of columns: 4 * 2 sums, 2 of b, 2 of scales, the scale, 1 of a and a term are 14 of
// the smaller targets' 16 registers.
constexpr int kTermRows = 4;
constexpr int kTermVectors = 2;

// One panel's columns of `rows` rows, at most kTermRows; `scales` and `bias` are the panel's,
// padded. A row beyond `rows` repeats the last one and is not stored.
void RunTermTile(const TermSumsBlock& t, const float* scales, const float* bias) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, t.scale);
  const V weights_by[kTermVectors] = {hn::LoadU(d, scales), hn::LoadU(d, scales + lanes)};
  const float* rows[kTermRows];
  V sums[kTermRows][kTermVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kTermRows; ++r) {
    rows[r] = t.a + std::min<int64_t>(r, t.rows - 1) * t.depth;
    sums[r][0] = sums[r][1] = hn::Zero(d);
  }
  const float* b = t.b;
  for (int64_t k = 0; k < t.depth; ++k, b += kTermVectors * lanes) {
    const V w[kTermVectors] = {hn::LoadU(d, b), hn::LoadU(d, b + lanes)};
#pragma GCC unroll 4
    for (int r = 0; r < kTermRows; ++r) {
      const V x = hn::Set(d, rows[r][k]);
#pragma GCC unroll 2
      for (int v = 0; v < kTermVectors; ++v) {
        const V term = hn::Mul(hn::Mul(hn::Mul(x, w[v]), weights_by[v]), by);
        sums[r][v] = hn::Add(sums[r][v], term);
      }
    }
  }
  HWY_ALIGN float row[kTermVectors * hn::MaxLanes(D())];
#pragma GCC unroll 4
  for (int r = 0; r < kTermRows; ++r) {
    if (r >= t.rows) return;
#pragma GCC unroll 2
    for (int v = 0; v < kTermVectors; ++v) {
      const V sum = hn::Add(sums[r][v], hn::LoadU(d, bias + v * lanes));
      const V cut = StdMin(StdMax(sum, hn::Set(d, t.min)), hn::Set(d, t.max));
      hn::Store(cut, d, row + v * lanes);
    }
    std::memcpy(t.c + r * t.c_pitch, row, t.columns * sizeof(float));
  }
}

void RunTermSums(const TermSumsBlock& block) {
  constexpr int64_t kPanel = kTermVectors * hn::MaxLanes(D());
  HWY_ALIGN float scales[kPanel] = {}, bias[kPanel] = {};
  for (int64_t n = 0; n < block.columns; n += kPanel) {
    TermSumsBlock tile = block;
    tile.columns = std::min(kPanel, block.columns - n);
    tile.b = block.b + n * block.depth;
    std::memcpy(scales, block.scales + n, tile.columns * sizeof(float));
    if (block.bias != nullptr) std::memcpy(bias, block.bias + n, tile.columns * sizeof(float));
    for (int64_t r = 0; r < block.rows; r += kTermRows) {
      tile.a = block.a + r * block.depth;
      tile.rows = std::min<int64_t>(kTermRows, block.rows - r);
      tile.c = block.c + r * block.c_pitch + n;
      RunTermTile(tile, scales, bias);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

TermSumsFunction* FindTermSums(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(RunTermSums);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
