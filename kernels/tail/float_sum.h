// Sums of two quantized values in single floats, proven equal to TFLite's integer ones.
//
// ADD rescales both bytes and their sum in fixed point, with 20 bits of fraction. One rounding of
//   fma(float(y + y_offset), y_scale, fma(float(x + x_offset), x_scale, addend))
// nearly always gives the same without an addend; where it does not, neighbours of the scales or a
// small addend mostly do. There are no more than 65,536 pairs of bytes, and all of them are
// compared.
#pragma once

#include <array>
#include <optional>

#include "kernels/tail/tail.h"
#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// Both scales have the signs of the summands.
struct FloatSum {
  float x_scale = 0, y_scale = 0, addend = 0;
};

struct ByteRange {
  int32_t least = 0, largest = 0;  // at most 256 values
};

// clamp(round(fma(...) + rounded_with) - rounded_with + output_offset, min, max), rounded to the
// nearest, ties to even, equals `add` for all pairs of `x` and `y`, and stays within 16 bits before
// the offset is added. What is added before the rounding decides where ties go. nullopt where no
// scales were found, and always where `isa` cannot fuse a multiplication and an addition. Takes
// some microseconds where the first try succeeds.
// Preconditions: multipliers are not negative, shifts not positive; the sum of the rescaled values
// stays below 2^28. Holds under DefaultFloatState.
std::optional<FloatSum> FindFloatSum(const QuantizedAdd& add, ByteRange x, ByteRange y, Isa isa,
                                     int32_t rounded_with = 0);

// Pairs of operands whose sum the floats round otherwise, and what `add` makes of them.
struct SumExceptions {
  static constexpr int kMost = 16;
  struct Pair {
    int32_t x, y, result;
  };
  int count = 0;
  std::array<Pair, kMost> pairs{};
};

struct NearFloatSum {
  FloatSum floats;
  SumExceptions exceptions;
};

// The scales that FindFloatSum would find, without exceptions; else those with the fewest. nullopt
// where all have more than SumExceptions::kMost, and where FindFloatSum has no scales to try. Of
// 1,200 random additions with the scales of nets 9 have exceptions: one or two, once ten.
std::optional<NearFloatSum> FindNearFloatSum(const QuantizedAdd& add, ByteRange x, ByteRange y,
                                             Isa isa, int32_t rounded_with = 0);

}  // namespace fuselite::kernels
