// Winograd's minimal filtering F(m x m, 3 x 3) for 3x3 convolutions of stride 1: a tile of m x m
// outputs takes (m + 2)^2 multiplications for each pair of channels instead of 9 m^2, 2.25 times
// fewer for m = 2 and 4 times fewer for m = 4.
//
//   Y = A^T [ sum over input channels of (G g G^T) * (B^T d B) ] A
//
// with d the inputs under a tile, g a filter, * elementwise: for each term, the sum over channels
// is a matrix product of its own.
//
// The matrices are Toom and Cook's for the points 0, 1, -1 and infinity (m = 2), and 0, 5/8, -5/8,
// 3/2, -3/2 and infinity (m = 4). Those of m = 4 have half the error of 0, 1, -1, 2, -2: with
// normally distributed operands and 128 channels, the root mean square of the error is 1.7 times
// that of a plain sum of products against 3.6 times. All entries of A and B are exact in float32.
//
// With a stride of 2 an axis is the sum of two filters of stride 1: its even inputs meet the outer
// taps, F(2, 2) for the points 0, 1 and infinity, and its odd ones the middle tap, each a term as
// it is, which share their filter. 25 terms take 1.44 times fewer multiplications for four outputs.
// (Nine outputs would take 1.65 times fewer, in 49 terms, and are at most 1% faster.)
#pragma once

#include <cstdint>

#include "kernels/simd.h"

namespace fuselite::kernels {

inline constexpr int kWinogradFilter = 3;

struct WinogradTile {
  int outputs = 2, stride = 1;  // along each axis

  // Inputs under a tile along each axis; terms are the square of it.
  constexpr int inputs() const { return (outputs - 1) * stride + kWinogradFilter; }
  constexpr int terms() const { return inputs() * inputs(); }
  // Different transformed filters: row by row, those of an axis being the square's root.
  constexpr int axis_filters() const { return stride == 1 ? inputs() : outputs + 2; }
  constexpr int filters() const { return axis_filters() * axis_filters(); }
  // Which of them a term is multiplied with.
  constexpr int FilterOf(int term) const {
    return AxisFilterOf(term / inputs()) * axis_filters() + AxisFilterOf(term % inputs());
  }
  friend constexpr bool operator==(const WinogradTile&, const WinogradTile&) = default;

 private:
  constexpr int AxisFilterOf(int input) const {
    if (stride == 1) return input;
    return input % 2 == 0 ? input / 2 : outputs + 1;
  }
};
inline constexpr int kMaxWinogradOutputs = 4;
inline constexpr int kMaxWinogradTerms = WinogradTile{4, 1}.terms();

// B^T d B of one tile: pixels[row * inputs + column] points at the channels of an input; term t of
// channel c goes to to[t * term_step + c].
struct WinogradInput {
  const float* pixels[kMaxWinogradTerms];
  int64_t channels = 0;
  float* to = nullptr;
  int64_t term_step = 0;
};

// clamp(A^T s A + bias, min, max) of one tile: term t of channel c is sums[t * term_step + c];
// pixels[row * outputs + column] points at where the channels of an output go. Those that nobody
// wants may all point at the same memory. A null bias is zeros.
struct WinogradOutput {
  const float* sums = nullptr;
  int64_t term_step = 0;
  const float* bias = nullptr;
  float min = 0, max = 0;
  int64_t channels = 0;
  float* pixels[kMaxWinogradOutputs * kMaxWinogradOutputs];
};

// G g G^T of one filter [3][3][channels], in double precision, rounded once: transformed filter f
// of channel c goes to to[f * filter_step + c].
struct WinogradFilter {
  const float* taps = nullptr;
  int64_t channels = 0;
  float* to = nullptr;
  int64_t filter_step = 0;
};

struct WinogradTransforms {
  void (*input)(const WinogradInput&);
  void (*output)(const WinogradOutput&);
  void (*filter)(const WinogradFilter&);
};
// Those of kFloatTiles (cut.h). Null below the vector levels.
const WinogradTransforms* FindWinogradTransforms(const WinogradTile& tile, Isa isa);

}  // namespace fuselite::kernels
