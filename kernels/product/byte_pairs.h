// Which weights of 8 bits may be summed in pairs by instructions that saturate at 16 bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// Groups of four int8 weights for each lane of some vectors of 32 bytes, those of all vectors side
// by side, one group behind the other.
struct ByteQuads {
  const std::byte* weights;
  int64_t groups;
  int vectors;  // 1 or 2

  int64_t group_bytes() const { return int64_t{vectors} * 32; }
};

// A vector of a group is plain if the products of any two values of uint8 with two neighbouring
// weights (the first two of a lane, or the last two) sum to what 16 bits hold: the positive ones of
// these weights sum to 128 at most, the negative ones to -128 at least. Else it is wide. The kind
// of a group has bit v set where its vector v is wide. Two groups of kind 0 may be joined if the
// same holds for each four weights in the same place of both.

// How many groups there are of each sort, in the order in which OrderByPairs() leaves them.
struct PairCounts {
  int32_t joined = 0;                // two groups each
  std::array<int32_t, 4> of_kind{};  // the others
};

// Writes the groups to `to`, which does not overlap them: those that are joined, two by two, then
// the others of kind 0, of kind 1 and so on, each kind in order; and their numbers to `order`. Adds
// 128 times the sum of each lane's weights in wide vectors to `biases`, which wrap around. The
// result does not depend on `isa`.
PairCounts OrderByPairs(Isa isa, const ByteQuads& quads, std::byte* to, std::span<int32_t> order,
                        std::span<int32_t> biases);

// Weights [row][k] of int8, or of uint8 where `flip` is 0x80, which as int8 (their highest bit
// inverted) have the zero point `zero_point`.
struct SampledWeights {
  const uint8_t* values;
  int64_t rows, depth;
  uint8_t flip = 0;
  int8_t zero_point = 0;
};
// About which part of the vectors of quads are wide that the weights less their zero point make,
// from some dozens of them. At least 8 rows and 4 terms.
double PartOfWide(const SampledWeights& weights);

}  // namespace fuselite::kernels
