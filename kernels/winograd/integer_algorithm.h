// F(2 x 2, 3 x 3) of algorithm.h in whole numbers, to the bit: the only fractions of its matrices
// are the halves of G, so with 2 G
//
//   4 Y = A^T [ sum over input channels of (2 G) g (2 G)^T * (B^T d B) ] A
//
// is exact, in 32 bits that wrap around too as long as 4 Y fits. Of bytes less their zero points
// the terms have 11 and 12 bits and a sign.
#pragma once

#include <cstdint>

#include "kernels/winograd/algorithm.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

inline constexpr int kIntegerTileTerms = WinogradTile{2, 1}.terms();

// Integers as they lie in memory: int8, uint8, or int16 within +-255.
struct WinogradValues {
  DataType type = DataType::kInt8;
  int16_t zero_point = 0;
};

// WinogradInput and WinogradFilter of integers.
struct IntegerWinogradInput {
  WinogradValues values;
  const std::byte* const* pixels = nullptr;
  int64_t channels = 0;
  int16_t* to = nullptr;
  int64_t term_step = 0;
};
struct IntegerWinogradFilter {
  WinogradValues values;
  const std::byte* taps = nullptr;
  int64_t channels = 0;
  int16_t* to = nullptr;
  int64_t term_step = 0;
};

// A^T s A / 4 + bias of one tile, as WinogradOutput.
struct IntegerWinogradOutput {
  const int32_t* sums = nullptr;
  int64_t term_step = 0;
  const int32_t* bias = nullptr;
  int64_t channels = 0;
  int32_t* pixels[4];
};

struct IntegerWinogradTransforms {
  void (*input)(const IntegerWinogradInput&);
  void (*output)(const IntegerWinogradOutput&);
  void (*filter)(const IntegerWinogradFilter&);
};
// Null below the vector levels.
const IntegerWinogradTransforms* FindIntegerWinogradTransforms(Isa isa);

}  // namespace fuselite::kernels
