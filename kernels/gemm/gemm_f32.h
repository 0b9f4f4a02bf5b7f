// The float32 matrix product under convolutions, fully connected layers and batch matmul.
//
// The right-hand side is packed into panels: `panel` columns side by side, two vectors wide. Panel
// p holds, for k = 0 .. depth - 1 in order, the columns [p * panel, (p + 1) * panel) of row k, with
// zeros behind the last column. Each sum runs over k in order in one accumulator: an output has the
// same bits wherever it stands in a tile, and whatever the tile's size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/register_tile.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// c[r][n] = min(max(bias[n] + sum over k of a[r][k] * b[k][n], min), max). Pitches count elements.
// `b` is packed; only its columns [0, columns) are written to c. No alignment is needed, though
// a packed `b` at 64 bytes is faster.
struct GemmF32Block {
  const float* a;
  int64_t a_pitch;
  int64_t rows;
  int64_t depth;
  const float* b;
  int64_t columns;
  const float* bias;  // null for none
  float min, max;
  float* c;
  int64_t c_pitch;
  bool backwards = false;  // columns from the last to the first: in another order, no other bits
};

// A register tile of the same product, whose left rows need not be dense.
struct TileF32 {
  const float* a;            // the first row
  const int64_t* rows;       // where each row begins behind it, in bytes
  const DepthPiece* pieces;  // of a row, whose values are summed in this order
  int64_t piece_count;
  // Packed: for each term `step` floats, every two vectors of them `pair_step` behind the two
  // before.
  const float* b;
  int64_t step, pair_step;
  bool plain;         // without a bias and bounds, which would take 5% of a depth of 64
  const float* bias;  // of whole vectors
  float min, max;
  float* c;
  int64_t c_pitch;
  int64_t columns;  // the last vector may have fewer
};
using TileF32Function = void(const TileF32& tile);

struct GemmF32 {
  static constexpr int kMostRows = 14;  // of a tile on any target

  int tile_rows;  // of the register tile: row counts divisible by it are fastest
  int panel;
  void (*run)(const GemmF32Block& block);
  // The function for `rows` in [1, tile_rows] and `vectors` up to MostTileVectors(rows): for one
  // row any number, else one or an even number.
  TileF32Function* (*tile)(int rows, int vectors);

  int lanes() const { return panel / 2; }
  int64_t panels(int64_t columns) const { return (columns + panel - 1) / panel; }
  size_t PackedBytes(int64_t depth, int64_t columns) const {
    return static_cast<size_t>(panels(columns) * panel * depth) * sizeof(float);
  }
};

// The version for `isa`; null below SSSE3.
const GemmF32* FindGemmF32(Isa isa);

// The matrix to be packed: element (k, n) at base[k * k_stride + n * n_stride].
struct GemmSource {
  const float* base;
  int64_t k_stride, n_stride;
  int64_t depth, columns;
};

// Writes panels [begin, end) to `packed`, the address of panel 0.
void PackPanelsF32(const GemmSource& source, int panel, int64_t begin, int64_t end, float* packed);

}  // namespace fuselite::kernels
