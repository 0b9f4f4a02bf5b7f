// The columns of resized rows in pieces, which stay in the first cache, and which threads share
// where images have few rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fuselite::kernels {

// Output columns [first, end), and the input columns that they read.
struct ColumnPiece {
  int64_t first, end;
  int64_t in_first, in_end;
  int64_t columns() const { return end - first; }
  int64_t in_columns() const { return in_end - in_first; }
};

// Pieces that read up to `most_bytes` of the input, whose pixels are `pixel_bytes` long, or have a
// single column. Tap or FixedTap; their columns do not decrease.
template <class AnyTap>
std::vector<ColumnPiece> ColumnPieces(const std::vector<AnyTap>& taps, int64_t pixel_bytes,
                                      int64_t most_bytes) {
  std::vector<ColumnPiece> pieces;
  for (int64_t x = 0; x < std::ssize(taps); ++x) {
    const int64_t low = taps[x].low, in_end = std::max(taps[x].low, taps[x].high) + int64_t{1};
    if (pieces.empty() || (in_end - pieces.back().in_first) * pixel_bytes > most_bytes) {
      pieces.push_back({.first = x, .end = x, .in_first = low, .in_end = in_end});
    }
    pieces.back().end = x + 1;
    pieces.back().in_end = std::max(pieces.back().in_end, in_end);
  }
  return pieces;
}

}  // namespace fuselite::kernels
