// Rows of weights of 8 bits in small groups, those of several rows side by side: the form in which
// integer dot products and products of pairs read them, a row to a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/isa.h"

namespace fuselite::kernels {

// What a group holds of each value: int8(value ^ flip), less `offset`.
struct ByteGroups {
  enum Shape {
    kQuads,      // four values of 8 bits
    kPairs,      // two values of 8 bits
    kWidePairs,  // two values of 16 bits
  };
  Shape shape = kQuads;
  uint8_t flip = 0;    // 0x80 takes 128 off uint8
  int32_t offset = 0;  // within 9 bits; 0 but for kWidePairs
  int values() const { return shape == kQuads ? 4 : 2; }
  int bytes() const { return shape == kPairs ? 2 : 4; }  // of a group
  // As many as fill a vector of 16 bytes.
  int64_t square_values() const { return shape == kWidePairs ? 8 : 16; }
};

// Writes group g of row i to `to` + g * step + i * bytes(). A last group that `count` values do not
// fill ends in zeros. The result does not depend on `isa`. The rows are a multiple of 4, `to` and
// `step` of 16 bytes.
void PackGroups(Isa isa, const ByteGroups& form, std::span<const uint8_t* const> rows,
                int64_t count, std::byte* to, int64_t step);

}  // namespace fuselite::kernels
