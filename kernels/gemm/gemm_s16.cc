#include "kernels/gemm/gemm_s16.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_s16.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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

struct TileS16 {
  const int16_t* a;
  int64_t a_pitch;
  int64_t depth;
  const int16_t* b;
  const int32_t* bias;  // of all the tile's columns, padded
  int32_t* c;
  int64_t c_pitch;
  int64_t columns;
};

// even + odd grows by the products of pairs. kDot: in one instruction, which Debian 12's Highway
// has no word for; its multiplication and addition take two.
template <bool kDot>
HWY_INLINE V32 AddPairs(hn::Vec<D16> x, hn::Vec<D16> w, V32 even, V32& odd) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kDot) {
    asm("vpdpwssd %2, %1, %0" : "+v"(even.raw) : "v"(x.raw), "v"(w.raw));
    return even;
  }
#elif HWY_TARGET == HWY_AVX2
  if constexpr (kDot) {
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(even.raw) : "x"(x.raw), "x"(w.raw));
    return even;
  }
#endif
  return hn::ReorderWidenMulAccumulate(D32(), x, w, even, odd);
}

template <int kTile, bool kDot>
HWY_NOINLINE void RunTileS16(const TileS16& t) {
  const D32 d;
  const D16 d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V32 even[kTile][2], odd[kTile][2];
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) {
    even[r][0] = even[r][1] = odd[r][0] = odd[r][1] = hn::Zero(d);
  }
  const int16_t* HWY_RESTRICT b = t.b;
  const int16_t* HWY_RESTRICT a = t.a;
  for (int64_t k = 0; k < t.depth; k += 2, a += 2, b += 4 * lanes) {
    const auto w0 = hn::LoadU(d16, b), w1 = hn::LoadU(d16, b + 2 * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < kTile; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + r * t.a_pitch, sizeof(pair));
      const auto x = hn::BitCast(d16, hn::Set(d, pair));
      even[r][0] = AddPairs<kDot>(x, w0, even[r][0], odd[r][0]);
      even[r][1] = AddPairs<kDot>(x, w1, even[r][1], odd[r][1]);
    }
  }
  const auto first = static_cast<size_t>(std::min(t.columns, lanes));
  const auto second = static_cast<size_t>(t.columns) - first;
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) {
    const auto sum = [&](int v) HWY_ATTR {
      const V32 products = hn::RearrangeToOddPlusEven(even[r][v], odd[r][v]);
      return hn::Add(products, hn::LoadU(d, t.bias + v * lanes));
    };
    int32_t* const c = t.c + r * t.c_pitch;
    StoreUpTo(sum(0), d, c, first);
    if (second > 0) StoreUpTo(sum(1), d, c + lanes, second);
  }
}

using RunTileS16Function = void(const TileS16&);

template <bool kDot, int kTile = kRows>
RunTileS16Function* TileS16For(int64_t rows) {
  if constexpr (kTile == 1) {
    return RunTileS16<1, kDot>;
  } else {
    return rows == kTile ? RunTileS16<kTile, kDot> : TileS16For<kDot, kTile - 1>(rows);
  }
}

template <bool kDot>
void RunGemmS16(const GemmS16Block& block) {
  const auto panel = static_cast<int64_t>(2 * hn::Lanes(D32()));
  HWY_ALIGN int32_t
      bias[2 * hn::MaxLanes(D32())] = {};  // what is behind the columns counts nowhere
  for (int64_t n = 0; n < block.columns; n += panel) {
    TileS16 tile{.a = block.a,
                 .a_pitch = block.depth,
                 .depth = block.terms > 0 ? block.terms : block.depth,
                 .b = block.b + n * block.depth + block.first * panel,
                 .bias = bias,
                 .c = block.c + n,
                 .c_pitch = block.c_pitch,
                 .columns = std::min(panel, block.columns - n)};
    if (block.bias != nullptr) std::copy_n(block.bias + n, tile.columns, bias);
    for (int64_t r = 0; r < block.rows; r += kRows) {
      tile.a = block.a + r * block.depth + block.first;
      tile.c = block.c + r * block.c_pitch + n;
      TileS16For<kDot>(std::min<int64_t>(kRows, block.rows - r))(tile);
    }
  }
}

// Without and with dot products.
constexpr GemmS16 kGemmS16[] = {
    {.tile_rows = kRows, .panel = 2 * hn::MaxLanes(D32()), .run = RunGemmS16<false>},
    {.tile_rows = kRows, .panel = 2 * hn::MaxLanes(D32()), .run = RunGemmS16<true>},
};

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

const GemmS16* FindGemmS16(Isa isa) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kGemmS16);
  const bool dot = isa.has(isa.has(Feature::kAvx512) ? Feature::kAvx512Vnni : Feature::kAvxVnni);
  const auto* const both = kTable.For(isa);
  return both == nullptr ? nullptr : &(*both)[dot ? 1 : 0];
}

}  // namespace fuselite::kernels
#endif
