#include "kernels/micro_kernels/term_sums.h"

#include <algorithm>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/micro_kernels/term_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kTermLanes = hn::MaxLanes(D());

// The next `n` values of a row, at most kTermLanes of them.
HWY_INLINE void ToFloats(const int16_t* from, int64_t n, float* to) {
  const D d;
  if (n < kTermLanes) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  const auto shorts = hn::LoadU(hn::Rebind<int16_t, D>(), from);
  hn::Store(hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), shorts)), d, to);
}

// Two vectors of columns are 4 * 2 sums, 2 of b, 2 of scales, the scale, 1 of a and a term: 15 of
// the smaller targets' 16 registers.
template <int kRows, int kVectors>
void RunTermTile(const TermTile& t) {
  const D d;
  const V by = hn::Set(d, t.scale);
  V scales[kVectors], sums[kRows][kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    scales[v] = LoadUpTo(d, t.scales + v * kTermLanes, t.columns - v * kTermLanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Zero(d);
  }
  HWY_ALIGN float x[kRows][kTermLanes];
  const float* b = t.b;
  for (const auto& [offset, terms] : std::span(t.pieces, t.piece_count)) {
    for (int64_t k = 0; k < terms; k += kTermLanes) {
      const int64_t n = std::min(kTermLanes, terms - k);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        ToFloats(reinterpret_cast<const int16_t*>(t.a + t.rows[r] + offset) + k, n, x[r]);
      }
      for (int64_t i = 0; i < n; ++i, b += kVectors * kTermLanes) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const V w = hn::LoadU(d, b + v * kTermLanes);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const V term = hn::Mul(hn::Mul(hn::Mul(hn::Set(d, x[r][i]), w), scales[v]), by);
            sums[r][v] = hn::Add(sums[r][v], term);
          }
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = v * kTermLanes, n = t.columns - first;
    const V bias = t.bias == nullptr ? hn::Zero(d) : LoadUpTo(d, t.bias + first, n);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V sum = hn::Add(sums[r][v], bias);
      const V cut = StdMin(StdMax(sum, hn::Set(d, t.min)), hn::Set(d, t.max));
      StoreUpTo(cut, d, t.c + r * t.c_pitch + first, n);
    }
  }
}

template <int kVectors>
TermTileFunction* TermTileOf(int rows) {
  switch (rows) {
    case 1: return RunTermTile<1, kVectors>;
    case 2: return RunTermTile<2, kVectors>;
    case 3: return RunTermTile<3, kVectors>;
    default: return RunTermTile<4, kVectors>;
  }
}
TermTileFunction* TermTileFor(int rows, int vectors) {
  return vectors == 1 ? TermTileOf<1>(rows) : TermTileOf<2>(rows);
}

constexpr TermSums kTermSums = {.lanes = kTermLanes, .tile = TermTileFor};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const TermSums* FindTermSums(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kTermSums);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
