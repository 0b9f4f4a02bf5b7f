#include "kernels/gemm/gemm_f32.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_f32.cc"
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

// Rows of the register tile: with two vectors of columns, 14 * 2 accumulators, 2 of b and 1 of a
// are 31 of AVX-512's and NEON's 32 registers, 6 * 2 + 2 + 1 are 15 of the others' 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 14;
#else
constexpr int kTileRows = 6;
#endif
constexpr int kMaxVectors = 8;

struct Tile {
  const float* a;
  int64_t a_pitch;
  int64_t depth;
  const float* b;
  int64_t panel_stride;  // floats from one panel to the next
  const float* bias;     // of all the tile's columns, padded
  V min, max;
  float* c;
  int64_t c_pitch;
  int64_t columns;
};

// The last vector may have fewer columns.
template <int kVectors>
HWY_INLINE void StoreRow(const V* sums, const Tile& t, float* c) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(sums[v], d, c + v * lanes);
  constexpr int kLast = kVectors - 1;
  StoreUpTo(sums[kLast], d, c + kLast * lanes, static_cast<size_t>(t.columns - kLast * lanes));
}

// kRows x kVectors vectors of c, from kVectors / 2 panels (or one vector of a single panel).
template <int kRows, int kVectors>
HWY_NOINLINE void RunTile(const Tile& t) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t panel = 2 * lanes;
  V acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = t.b;
  const int64_t pitch = t.a_pitch;
  const float* HWY_RESTRICT a = t.a;
  for (int64_t k = 0; k < t.depth; ++k, b += panel, ++a) {
    V w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      w[v] = hn::LoadU(d, b + v / 2 * t.panel_stride + v % 2 * lanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r * pitch]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const V sum = hn::Add(acc[r][v], hn::LoadU(d, t.bias + v * lanes));
      acc[r][v] = StdMin(StdMax(sum, t.min), t.max);
    }
    StoreRow<kVectors>(acc[r], t, t.c + r * t.c_pitch);
  }
}

using RunTileFunction = void (*)(const Tile&);

// The function for `rows` in [1, kTileRows].
template <int kVectors, int kRows = kTileRows>
RunTileFunction TileFor(int64_t rows) {
  if constexpr (kRows == 1) {
    return RunTile<1, kVectors>;
  } else {
    return rows == kRows ? RunTile<kRows, kVectors> : TileFor<kVectors, kRows - 1>(rows);
  }
}

// The function for one row and `vectors` in [1, kMaxVectors]: it has too few accumulators in one
// panel to hide the latency of an addition.
template <int kVectors = kMaxVectors>
RunTileFunction RowFor(int64_t vectors) {
  if constexpr (kVectors == 1) {
    return RunTile<1, 1>;
  } else {
    return vectors == kVectors ? RunTile<1, kVectors> : RowFor<kVectors - 1>(vectors);
  }
}

void RunGemmF32(const GemmF32Block& block) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t panel = 2 * lanes;
  const int64_t widest = block.rows == 1 ? kMaxVectors * lanes : panel;
  HWY_ALIGN float bias[kMaxVectors * hn::MaxLanes(D())];
  if (block.bias == nullptr) std::fill_n(bias, widest, 0.0f);
  int64_t width;
  for (int64_t n = 0; n < block.columns; n += width) {
    width = std::min(block.columns - n, widest);
    const int64_t vectors = (width + lanes - 1) / lanes;
    if (block.bias != nullptr) {
      const int64_t last = (vectors - 1) * lanes;
      std::copy_n(block.bias + n, last, bias);
      hn::Store(LoadUpTo(d, block.bias + n + last, width - last), d, bias + last);
    }
    Tile tile{.a = block.a,
              .a_pitch = block.a_pitch,
              .depth = block.depth,
              .b = block.b + n * block.depth,
              .panel_stride = panel * block.depth,
              .bias = bias,
              .min = hn::Set(d, block.min),
              .max = hn::Set(d, block.max),
              .c = block.c + n,
              .c_pitch = block.c_pitch,
              .columns = width};
    if (block.rows == 1) {
      RowFor(vectors)(tile);
      continue;
    }
    for (int64_t r = 0; r < block.rows; r += kTileRows) {
      const int64_t rows = std::min<int64_t>(kTileRows, block.rows - r);
      tile.a = block.a + r * block.a_pitch;
      tile.c = block.c + r * block.c_pitch + n;
      (vectors == 2 ? TileFor<2>(rows) : TileFor<1>(rows))(tile);
    }
  }
}

constexpr GemmF32 kGemmF32 = {
    .tile_rows = kTileRows, .panel = 2 * hn::MaxLanes(D()), .run = RunGemmF32};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

const GemmF32* FindGemmF32(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kGemmF32);
  return kTable.For(isa);
}

}  // namespace fuselite::kernels
#endif
