// Register tiles of products whose every term is scaled before it is added, as TFLite's hybrid
// transposed convolution does.
#pragma once

#include <cstdint>

#include "kernels/gemm/register_tile.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// c[r][n] = min(max(sum over k of (a[r][k] * b[k][n]) * scales[n] * scale + bias[n], min), max),
// the terms added in order of k, every operation rounded.
struct TermTile {
  static constexpr int kMostRows = 4, kMostVectors = 2;

  const std::byte* a;        // the first row, of int16 values
  const int64_t* rows;       // where each row begins behind it, in bytes
  const DepthPiece* pieces;  // of a row, whose values are summed in this order
  int64_t piece_count;
  const float* b;  // packed: the tile's vectors of columns, term by term
  const float* scales;
  float scale;
  const float* bias;  // null for none
  float min, max;
  float* c;
  int64_t c_pitch;  // values
  int64_t columns;  // as many are read of `scales` and `bias`
};
using TermTileFunction = void(const TermTile& tile);

struct TermSums {
  int lanes;
  // The function for `rows` in [1, kMostRows] and `vectors` in [1, kMostVectors].
  TermTileFunction* (*tile)(int rows, int vectors);
};

// The version for `isa`; null below SSSE3.
const TermSums* FindTermSums(Isa isa);

}  // namespace fuselite::kernels
