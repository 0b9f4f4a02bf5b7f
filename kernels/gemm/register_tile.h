// What the register tiles of products have in common, whatever they multiply.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fuselite::kernels {

// Values of a row of the left side that follow each other: `terms` of them, or pairs, `offset`
// bytes behind the row's start.
struct DepthPiece {
  int64_t offset, terms;
};

// The most vectors of columns that a tile of one row has.
inline constexpr int kMostTileVectors = 8;

// How many vectors of columns a tile of `rows` rows has at most: few rows have too few sums in two
// vectors to hide the latency of an addition.
constexpr int MostTileVectors(int rows) { return rows == 1 ? kMostTileVectors : rows == 2 ? 4 : 2; }

// How many of `vectors` that are left the next tile takes: two by two, as they are packed, a last
// one by itself.
constexpr int NextTileVectors(int rows, int vectors) {
  return vectors == 1 ? 1 : std::min(MostTileVectors(rows), vectors / 2 * 2);
}

}  // namespace fuselite::kernels
