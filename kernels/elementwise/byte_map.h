// Functions of bytes that are given as tables of 256 entries.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// A function that follows one line, or two that meet, as requantizations and LEAKY_RELU do: for a
// value v of 8 bits with sign
//   q = larger or smaller of sat16((256 v slope) >> 16 + start), of the two lines,
//   doubled `doublings` times with saturation; its high byte, and one more where v's bit is set.
// Saturation of 16 bits clamps the high byte to 8. The bits make up for what 16 bits are too coarse
// for: the result is exact wherever the lines stay within one below the function.
struct ByteLines {
  int16_t slopes[2], starts[2];
  bool larger;
  int doublings;
  uint8_t in_flip, out_flip;  // 0x80 where values have no sign: XORed to inputs and results
  uint8_t bits[32];           // bit v of the flipped value, as a number without sign

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

// The kernel that maps input 0 to the output, bytes both, with vectors: by permutations of the
// table where the machine has them, else by limits or lines where there are some, else by a tail's
// lookup. Rows may be pitched, and the output may lie in the input's place.
Result<std::unique_ptr<Kernel>> MakeByteMap(const OpDescription& op, const std::string& name,
                                            std::vector<uint8_t> table, int knee, Isa isa);

// The plan of such a kernel. `table` is asked for when it is built, and lines are looked for then:
// most functions of bytes become a part of a tail before that.
Result<KernelPlan> PlanByteMap(
    const OpDescription& op, const std::string& name, int knee, Isa isa,
    std::function<Result<std::vector<uint8_t>>(const OpDescription&)> table);

}  // namespace fuselite::kernels
