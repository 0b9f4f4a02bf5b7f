// A whole product, whose left rows are dense, from its register tiles.

// Per-target include guard.
#if defined(FUSELITE_KERNELS_GEMM_WHOLE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_GEMM_WHOLE_PRODUCT_INL_H_
#undef FUSELITE_KERNELS_GEMM_WHOLE_PRODUCT_INL_H_
#else
#define FUSELITE_KERNELS_GEMM_WHOLE_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/gemm/register_tile.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Computes `block`, a GemmF32Block or a GemmS16Block, whose left rows are `a_pitch` values apart,
// by tiles of at most `kTileRows` rows: a single row takes many vectors of columns at a time,
// several rows a panel. `tile` has what is the same for all tiles; function(rows, vectors) is the
// function of one.
template <int kTileRows, class Block, class Tile, class FunctionFor>
HWY_INLINE void RunWholeProduct(const Block& block, int64_t a_pitch, Tile tile,
                                FunctionFor function) {
  using Sum = std::remove_pointer_t<decltype(block.c)>;
  const hn::ScalableTag<Sum> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), panel = 2 * lanes;
  const int64_t widest = block.rows == 1 ? kMostTileVectors * lanes : panel;
  HWY_ALIGN Sum bias[kMostTileVectors * hn::MaxLanes(d)];
  if (block.bias == nullptr) std::fill_n(bias, widest, Sum{0});
  const int64_t together = EvenTileRows(block.rows, kTileRows);
  int64_t rows[kTileRows];
  for (int64_t r = 0; r < together; ++r) rows[r] = r * a_pitch * int64_t{sizeof(*block.a)};
  tile.rows = rows;
  tile.bias = bias;
  tile.pair_step = panel * block.depth;
  tile.c_pitch = block.c_pitch;
  const int64_t first = block.backwards ? (block.columns - 1) / widest * widest : 0;
  const int64_t step = block.backwards ? -widest : widest;
  for (int64_t n = first; n >= 0 && n < block.columns; n += step) {
    tile.columns = std::min(block.columns - n, widest);
    const int64_t vectors = (tile.columns + lanes - 1) / lanes;
    if (block.bias != nullptr) {
      const int64_t last = (vectors - 1) * lanes;
      std::copy_n(block.bias + n, last, bias);
      hn::Store(LoadUpTo(d, block.bias + n + last, tile.columns - last), d, bias + last);
    }
    tile.b = block.b + n * block.depth;
    for (int64_t r = 0; r < block.rows; r += together) {
      tile.a = block.a + r * a_pitch;
      tile.c = block.c + r * block.c_pitch + n;
      const int64_t count = std::min(together, block.rows - r);
      function(static_cast<int>(count), static_cast<int>(vectors))(tile);
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // FUSELITE_SIMD_TARGET

#endif  // include guard
