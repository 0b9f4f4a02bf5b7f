// Where the operands of a tail lie, as emitted code reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/tail/tail.h"

namespace fuselite::kernels {

// The most that an operator's stages read; a hybrid operator has its bias in front of them.
inline constexpr int kMaxTailOperands = 8;
// A pointer for each stage that has an operand, in the order of the stages: to its element for a
// tile's first row and channel.
using TailSlots = std::array<const std::byte*, kMaxTailOperands + 1>;

// Whether rows of different batches may follow each other in one tile: every operand's element is
// a linear function of the row.
bool TailIsLinear(const Tail& tail);

// Of an operand that emitted code reads.
inline int64_t ElementBytes(const TailOperand& operand) { return operand.bfloat16 ? 2 : 4; }

// Fills the slots for the tile at (row, channel). `inputs` are those of KernelArgs.
void BindTailOperands(const Tail& tail, const void* const* inputs, int64_t row, int64_t channel,
                      TailSlots* slots);

}  // namespace fuselite::kernels
