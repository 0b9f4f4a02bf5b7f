// From sums whose lanes hold interleaved channels (ChannelOfLane) to vectors of channels in order.
#pragma once

#include <span>
#include <vector>

#include "jit/code/assembler.h"

namespace fuselite::jit {

// `regs` is a group of 2 or 4 vectors of `width` bytes, which together fill whole vectors of the
// ISA; upper bytes are zero. Returns the registers of those vectors, which are among `regs`; the
// others and the four temporaries are clobbered.
std::vector<int> EmitChannelOrder(Assembler& a, std::span<const int> regs, int width,
                                  std::span<const int> temporaries);

}  // namespace fuselite::jit
