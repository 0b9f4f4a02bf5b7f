// What the kernels of FULLY_CONNECTED that read packed weights as they are, and their vector code,
// tell each other: weights in blocks, and one block for each unit where rows are few.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/operator.h"

namespace fuselite::kernels {

// A row of the input as the vector code reads it. For weights of 4 bits and fewer bytes q + offset
// are in `values`, and `sums` has -8 times their sum of each block: the weights are stored with 8
// added. For weights of 8 bits int16 values q, and no sums.
struct BlockwiseRow {
  const std::byte* values;
  const int32_t* sums;
  float scale, offset;  // offset 0 for weights of 8 bits
};

// A panel of weights times some rows. It has as many units as Tile::vectors hold in their lanes.
// `weights` holds, for each 8 (of 4 bits) or 2 (of 8 bits) of the depth, one vector of `lanes` * 4
// (* 2) bytes for each `lanes` of them. Byte 4 u + k has weights k (low half) and k + 4 of unit u,
// or byte 2 u + k weight k. `scales` holds those of the units for each block, float16 or float32.
// `per_offset` holds, for each unit, what its sum has for each 1 of the offset: a float, or an
// int32 where the tile is exact. `per_offset` is aligned to kAlignment, and so are weights and
// scales of panels of 16 units and more.
struct BlockwiseTile {
  const std::byte* weights;
  const std::byte* scales;
  const std::byte* per_offset;
  int64_t weights_step, scales_step;  // bytes from a block to the next one
  int64_t blocks, block_size;         // a multiple of kBlockwiseStep
  // One block of float32 scales, whose sum is an integer to the end and then rounded as TFLite's
  // hybrid kernels do it: sum * (row's scale * unit's scale).
  bool exact;
  bool fetches_ahead;        // weights into L1, where few rows wait for them from beyond L2
  const BlockwiseRow* rows;  // `row_count` of them, at most Tile::max_rows
  int row_count;
  const float* bias;  // null for none
  float min, max;
  float* out;
  int64_t out_pitch;
  int64_t units;  // of the panel: all, or the last ones
};
// The depth whose 4-bit products fit the 16 bits of their partial sums: 8 pairs of 15 * 128.
inline constexpr int64_t kBlockwiseStep = 32;
// The largest block whose sums fit 32 bits where weights of 4 bits stand in the high half of their
// byte: half of it times 16 * 15 * 128.
inline constexpr int64_t kMostBlockSize = int64_t{1} << 16;

struct BlockwiseFunctions {
  int lanes = 0;
  struct Tile {
    void (*run)(const BlockwiseTile& tile) = nullptr;
    int max_rows = 0;           // that one takes
    int vectors = 1;            // of units in a panel
    bool dot_products = false;  // AVX512-VNNI's
  };
  // Indexed by the bits of the weights (4, 8) and of the scales (16, 32).
  Tile tiles[2][2] = {};
  // Bytes as ShortRowFunctions::quantize_u8 leaves them become signed; `sums` as BlockwiseRow's.
  void (*sign_bytes)(uint8_t* values, int64_t blocks, int64_t block_size, int32_t* sums) = nullptr;
};
// `functions` with AVX512-VNNI's dot products where there are such tiles. x86-64 alone.
BlockwiseFunctions WithDotProducts(const BlockwiseFunctions& functions);
// The functions for an ISA; null below SSSE3.
const BlockwiseFunctions* FindBlockwise(Isa isa);

}  // namespace fuselite::kernels
