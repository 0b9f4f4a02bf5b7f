// What the reductions of bytes have in common.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/reduce/reduce.h"
#include "kernels/reduce/rescale.h"

namespace fuselite::kernels {

// Outputs of a unit: enough that a row of channels is read once, and short sums are rescaled
// together.
constexpr int64_t kByteBlock = 256;

struct ByteReduction {
  ReduceKind kind;
  uint8_t flip;  // 0x80 where the values are signed
  Rescale rescale;
};

Result<std::unique_ptr<Kernel>> MakeReduceGroups(const GroupedColumns& grouped,
                                                 const ByteReduction& reduction, Isa isa);

}  // namespace fuselite::kernels
