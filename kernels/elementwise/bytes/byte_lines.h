// Functions of bytes that need no table: lines and limits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace fuselite::kernels {

// A function that follows one line, or two that meet, as requantizations and LEAKY_RELU do: for a
// value v of 8 bits with sign
//   q = larger or smaller of sat16((256 v slope >> 16) + start), of the two lines;
//   sat8(q >> shift), and one more where v's bit is set.
// The bits make up for what 16 bits are too coarse for: the result is exact wherever the lines stay
// within one below the function. Most functions have lines that need none.
struct ByteLines {
  int16_t slopes[2], starts[2];
  bool larger;
  int shift;                  // at most 8
  uint8_t in_flip, out_flip;  // 0x80 where values have no sign: XORed to inputs and results
  uint8_t bits[32];           // bit v of the flipped value, as a number without sign
  bool corrects;              // whether any is set

  uint8_t operator()(uint8_t x) const;
};

// Lines for table[x], x read without sign; nullopt where there are none. `signed_in`, `signed_out`:
// whether values and results have a sign. `knee`: the value at which the function may bend.
std::optional<ByteLines> FindByteLines(std::span<const uint8_t> table, bool signed_in,
                                       bool signed_out, int knee);

// Values within limits, others at the nearer one, as MAXIMUM and MINIMUM by a number give them: of
// bytes without sign, which values with one become where `flip` is 0x80 by XORing it.
struct ByteLimits {
  uint8_t lowest, highest, flip;
};

// nullopt where the table is another function.
std::optional<ByteLimits> FindByteLimits(std::span<const uint8_t> table, bool signed_in,
                                         bool signed_out);

}  // namespace fuselite::kernels
