// Rows of weights of 8 bits in small groups, those of several rows side by side: the form in which
// integer dot products and products of pairs read them, a row to a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/cpu/isa.h"

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
  // The number of values that fill a vector of 16 bytes.
  int64_t square_values() const { return shape == kWidePairs ? 8 : 16; }
};

// Writes group g of row i to `to` + g * step + i * bytes(). A last group that `count` values do not
// fill ends in zeros. The result does not depend on `isa`. The rows are a multiple of 4, `to` and
// `step` of 16 bytes.
void PackGroups(Isa isa, const ByteGroups& form, std::span<const uint8_t* const> rows,
                int64_t count, std::byte* to, int64_t step);

// A matrix of bytes whose columns lie side by side: value k of column i is values[k * k_step + i].
struct ByteColumns {
  const uint8_t* values;
  int64_t k_step;
  int64_t count;  // of columns
};
// A matrix of bytes whose rows' values lie side by side: value k of row i is values[i * step + k].
struct ByteRows {
  const uint8_t* values;
  int64_t step;
  int64_t count;  // of rows
};

// As PackGroups() of columns, `depth` values each, in quads without an offset: group g of columns
// [4 q, 4 q + 4) is written to `to` + g * step + places[q], and sums[i] grows by the values of
// column i as the group holds them. Columns from columns.count on are zeros, and so are their sums,
// of which there are four for each of `places`. These are multiples of 16, as `step` is; of every
// sixteen columns that they have place for there is one.
void PackColumnQuads(Isa isa, uint8_t flip, const ByteColumns& columns, int64_t depth,
                     std::span<const int64_t> places, std::byte* to, int64_t step, int32_t* sums);
// As PackColumnQuads(), of rows. Nothing is read behind the last one's values.
void PackRowQuads(Isa isa, uint8_t flip, const ByteRows& rows, int64_t depth,
                  std::span<const int64_t> places, std::byte* to, int64_t step, int32_t* sums);

}  // namespace fuselite::kernels
