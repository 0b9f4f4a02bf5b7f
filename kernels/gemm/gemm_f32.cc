#include "kernels/gemm/gemm_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "kernels/gemm/whole_product-inl.h"
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

// The last vector may have fewer columns.
template <int kVectors>
HWY_INLINE void StoreRow(const V* sums, const TileF32& t, float* c) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(sums[v], d, c + v * lanes);
  constexpr int kLast = kVectors - 1;
  StoreUpTo(sums[kLast], d, c + kLast * lanes, static_cast<size_t>(t.columns - kLast * lanes));
}

template <int kRows, int kVectors>
HWY_NOINLINE void RunTile(const TileF32& t) {
  const D d;
  const int64_t lanes = hn::Lanes(d), step = t.step, pair_step = t.pair_step;
  V acc[kRows][kVectors];
  int64_t rows[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    rows[r] = t.rows[r];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = t.b;
  for (int64_t p = 0; p < t.piece_count; ++p) {
    const std::byte* HWY_RESTRICT a = reinterpret_cast<const std::byte*>(t.a) + t.pieces[p].offset;
    for (int64_t k = t.pieces[p].terms; k > 0; --k, b += step, a += sizeof(float)) {
      V w[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        w[v] = hn::LoadU(d, b + v / 2 * pair_step + v % 2 * lanes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, *reinterpret_cast<const float*>(a + rows[r]));
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
      }
    }
  }
  if (t.plain) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) StoreRow<kVectors>(acc[r], t, t.c + r * t.c_pitch);
    return;
  }
  const V min = hn::Set(d, t.min), max = hn::Set(d, t.max);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const V sum = hn::Add(acc[r][v], hn::LoadU(d, t.bias + v * lanes));
      acc[r][v] = StdMin(StdMax(sum, min), max);
    }
    StoreRow<kVectors>(acc[r], t, t.c + r * t.c_pitch);
  }
}

template <int kVectors, int kRows>
TileF32Function* RowsFor(int rows) {
  if constexpr (kRows == 1) {
    return RunTile<1, kVectors>;
  } else {
    return rows == kRows ? RunTile<kRows, kVectors> : RowsFor<kVectors, kRows - 1>(rows);
  }
}

// One row has tiles of every width, two rows even ones of up to four vectors.
template <int kVectors = kMostTileVectors>
TileF32Function* TileFor(int rows, int vectors) {
  constexpr bool kOfTwoRows = kVectors <= MostTileVectors(2) && kVectors % 2 == 0;
  constexpr int kMostRows = kVectors <= 2 ? kTileRows : kOfTwoRows ? 2 : 1;
  if constexpr (kVectors == 1) {
    return RowsFor<1, kMostRows>(rows);
  } else {
    return vectors == kVectors ? RowsFor<kVectors, kMostRows>(rows)
                               : TileFor<kVectors - 1>(rows, vectors);
  }
}

void RunGemmF32(const GemmF32Block& block) {
  const DepthPiece all{.offset = 0, .terms = block.depth};
  TileF32 tile{};
  tile.pieces = &all;
  tile.piece_count = 1;
  tile.step = 2 * static_cast<int64_t>(hn::Lanes(D()));
  tile.min = block.min;
  tile.max = block.max;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  tile.plain = block.bias == nullptr && block.min == -kInfinity && block.max == kInfinity;
  RunWholeProduct<kTileRows>(block, block.a_pitch, tile, TileFor<kMostTileVectors>);
}

constexpr GemmF32 kGemmF32 = {.tile_rows = kTileRows,
                              .panel = 2 * hn::MaxLanes(D()),
                              .run = RunGemmF32,
                              .tile = TileFor<kMostTileVectors>};

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
