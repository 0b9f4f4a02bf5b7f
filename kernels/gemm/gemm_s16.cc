#include "kernels/gemm/gemm_s16.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_s16.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/add_terms-inl.h"
#include "kernels/gemm/whole_product-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<int32_t>;
using V32 = hn::Vec<D32>;
using D16 = hn::ScalableTag<int16_t>;

// Two vectors of columns: 12 * 2 sums, 2 of b, 1 of a and a product are 28 of AVX-512's 32
// registers; 5 * 2 + 2 + 1 + 1 are 14 of 16. NEON keeps two sums for each.
#if HWY_TARGET == HWY_AVX3
constexpr int kRows = 12;
#else
constexpr int kRows = 5;
#endif

template <int kTile, int kVectors, Terms kTerms>
HWY_NOINLINE void RunTileS16(const TileS16& t) {
  const D32 d;
  const D16 d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = t.step, pair_step = t.pair_step;
  V32 even[kTile][kVectors], odd[kTile][kVectors];
  int64_t rows[kTile];
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) {
    rows[r] = t.rows[r];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) even[r][v] = odd[r][v] = hn::Zero(d);
  }
  const int16_t* HWY_RESTRICT b = t.b;
  for (int64_t p = 0; p < t.piece_count; ++p) {
    const std::byte* HWY_RESTRICT a = reinterpret_cast<const std::byte*>(t.a) + t.pieces[p].offset;
    for (int64_t k = t.pieces[p].terms; k > 0; --k, a += sizeof(int32_t), b += step) {
      hn::Vec<D16> w[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        w[v] = hn::LoadU(d16, b + v / 2 * pair_step + v % 2 * 2 * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kTile; ++r) {
        int32_t pair;
        std::memcpy(&pair, a + rows[r], sizeof(pair));
        const auto x = hn::BitCast(d16, hn::Set(d, pair));
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          even[r][v] = AddTerms<kTerms>(d, x, w[v], even[r][v], odd[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) {
    int32_t* const c = t.c + r * t.c_pitch;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const V32 products = hn::RearrangeToOddPlusEven(even[r][v], odd[r][v]);
      const V32 sum = hn::Add(products, hn::LoadU(d, t.bias + v * lanes));
      if (v + 1 < kVectors) {
        hn::StoreU(sum, d, c + v * lanes);
      } else {
        StoreUpTo(sum, d, c + v * lanes, static_cast<size_t>(t.columns - v * lanes));
      }
    }
  }
}

template <Terms kTerms, int kVectors, int kTile>
TileS16Function* RowsS16For(int rows) {
  if constexpr (kTile == 1) {
    return RunTileS16<1, kVectors, kTerms>;
  } else {
    return rows == kTile ? RunTileS16<kTile, kVectors, kTerms>
                         : RowsS16For<kTerms, kVectors, kTile - 1>(rows);
  }
}

// One row has tiles of every width, two rows even ones of up to four vectors.
template <Terms kTerms, int kVectors = kMostTileVectors>
TileS16Function* TileS16For(int rows, int vectors) {
  constexpr bool kOfTwoRows = kVectors <= MostTileVectors(2) && kVectors % 2 == 0;
  constexpr int kMostRows = kVectors <= 2 ? kRows : kOfTwoRows ? 2 : 1;
  if constexpr (kVectors == 1) {
    return RowsS16For<kTerms, 1, kMostRows>(rows);
  } else {
    return vectors == kVectors ? RowsS16For<kTerms, kVectors, kMostRows>(rows)
                               : TileS16For<kTerms, kVectors - 1>(rows, vectors);
  }
}

template <Terms kTerms>
void RunGemmS16(const GemmS16Block& block) {
  const DepthPiece all{.offset = 0, .terms = block.depth / 2};
  TileS16 tile{};
  tile.pieces = &all;
  tile.piece_count = 1;
  tile.step = 4 * static_cast<int64_t>(hn::Lanes(D32()));
  RunWholeProduct<kRows>(block, block.depth, tile, TileS16For<kTerms, kMostTileVectors>);
}

template <Terms kTerms>
constexpr GemmS16 GemmOf() {
  return {.tile_rows = kRows,
          .panel = 2 * hn::MaxLanes(D32()),
          .run = RunGemmS16<kTerms>,
          .tile = TileS16For<kTerms, kMostTileVectors>};
}

// In the order of Terms.
constexpr GemmS16 kGemmS16[] = {GemmOf<Terms::kPairs>(), GemmOf<Terms::kDotPairs>(),
                                GemmOf<Terms::kDotQuads>()};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

int64_t ExactTerms(DataType weights, int32_t offset) {
  const int bits = std::min(BitWidth(weights), 8);
  const int64_t largest = (int64_t{1} << (bits - 1)) + std::abs(int64_t{offset});
  return INT32_MAX / (largest * 32768) / 2 * 2;
}

namespace {

const GemmS16* FindGemm(Isa isa, Terms terms) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kGemmS16);
  const auto* const all = kTable.For(isa);
  return all == nullptr ? nullptr : &(*all)[static_cast<int>(terms)];
}

}  // namespace

const GemmS16* FindGemmS16(Isa isa) {
  return FindGemm(isa, isa.has_vnni() ? Terms::kDotPairs : Terms::kPairs);
}

const GemmS16* FindGemmQuads(Isa isa) {
  return isa.has_vnni() ? FindGemm(isa, Terms::kDotQuads) : nullptr;
}

}  // namespace fuselite::kernels
#endif
