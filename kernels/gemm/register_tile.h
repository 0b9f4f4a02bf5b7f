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

// Of how many rows tiles of at most `most` are so that those of `rows` have about as many each: 16
// rows are two tiles of 8, where 14 and 2 would leave the sums of the last waiting for each other.
constexpr int64_t EvenTileRows(int64_t rows, int64_t most) {
  const int64_t tiles = std::max<int64_t>(1, (rows + most - 1) / most);
  return (rows + tiles - 1) / tiles;
}

}  // namespace fuselite::kernels
