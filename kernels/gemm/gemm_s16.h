// The matrix product under 8-bit operators, and under those of 16 by 8 bits: both sides as int16
// with their zero points taken off, sums of pairs in int32. Exact for every operand of 8 bits, and
// needs no instruction beyond SSSE3.
//
// Depths are even: an odd one gets a zero behind it. The right-hand side is packed into panels of
// `panel` columns, two vectors of int32 wide; panel p holds for each pair of terms the columns
// [p * panel, (p + 1) * panel) side by side, each as its two values, zeros behind the last column.
#pragma once

#include <cstdint>

#include "kernels/gemm/register_tile.h"
#include "runtime/cpu/isa.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// c[r][n] = bias[n] + sum over k of a[r][k] * b[k][n], wrapping around.
struct GemmS16Block {
  const int16_t* a;  // rows of `depth`, side by side
  int64_t rows;
  int64_t depth;     // even
  const int16_t* b;  // packed
  int64_t columns;
  const int32_t* bias;  // null for none
  int32_t* c;
  int64_t c_pitch;
  bool backwards = false;  // columns from the last to the first: in another order, no other bits
};

// A register tile of the same product, whose left rows need not be dense.
struct TileS16 {
  const int16_t* a;          // the first row
  const int64_t* rows;       // where each row begins behind it, in bytes
  const DepthPiece* pieces;  // of a row, in pairs
  int64_t piece_count;
  // Packed: for each pair of terms `step` values, every two vectors of them `pair_step` behind the
  // two before.
  const int16_t* b;
  int64_t step, pair_step;
  const int32_t* bias;  // of whole vectors
  int32_t* c;
  int64_t c_pitch;
  int64_t columns;  // the last vector may have fewer
};
using TileS16Function = void(const TileS16& tile);

struct GemmS16 {
  static constexpr int kMostRows = 12;  // of a tile on any target

  int tile_rows;
  int panel;
  void (*run)(const GemmS16Block& block);
  // The function for `rows` in [1, tile_rows] and `vectors` up to MostTileVectors(rows): for one
  // row any number, else one or an even number.
  TileS16Function* (*tile)(int rows, int vectors);

  int lanes() const { return panel / 2; }
  int64_t panels(int64_t columns) const { return (columns + panel - 1) / panel; }
  // int16 values of one packed matrix.
  int64_t PackedValues(int64_t depth, int64_t columns) const {
    return panels(columns) * panel * ((depth + 1) & ~int64_t{1});
  }
};

// The version for `isa`; null below SSSE3.
const GemmS16* FindGemmS16(Isa isa);

// 8-bit dot products in the same frame: each int16 of `a` is two uint8, each of `b` two int8, so
// that pairs are quads; depths are counted in int16. Null where the core has none.
const GemmS16* FindGemmQuads(Isa isa);

// The even number of products of any int16 and weights, `offset` added to these, whose sum fits
// into 32 bits: 510 of int8, and of either byte of int16.
int64_t ExactTerms(DataType weights, int32_t offset);

// The matrix to be packed, of int8, uint8, int4 or int16: element (k, n) is the one at
// first + k * k_stride + n * n_stride, plus `offset`. Of int16 a byte is packed at a time: the low
// one as from -128 to 127, and what is left over it, by 256.
struct GemmS16Source {
  enum class Bytes : uint8_t { kAll, kLow, kHigh };
  DataType type;
  const void* data;
  int64_t first;
  int64_t k_stride, n_stride;
  int32_t offset;
  int64_t depth, columns;
  Bytes bytes = Bytes::kAll;
};

// Writes panels [begin, end) to `packed`, the address of panel 0.
void PackPanelsS16(const GemmS16Source& source, int panel, int64_t begin, int64_t end,
                   int16_t* packed);
// Writes all panels for FindGemmQuads: of int8, with k_stride 1.
void PackQuads(const GemmS16Source& source, int panel, int8_t* packed);

}  // namespace fuselite::kernels
