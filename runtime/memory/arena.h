// Placing values with limited lifetimes in one block of memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/memory/aligned_buffer.h"

namespace fuselite {

// A value that lives from the first step that touches it to the last, both included.
struct ArenaValue {
  size_t bytes = 0;
  int first_step = 0, last_step = 0;
  size_t alignment = kAlignment;  // a power of two
};

struct ArenaPlan {
  std::vector<size_t> offsets;  // one for each value, a multiple of its alignment
  size_t bytes = 0;             // of the whole block
};

// Offsets such that no two values that are alive at the same step overlap. Values of no bytes are
// at offset 0. Takes time in proportion to the number of pairs that are alive together, and to
// logarithms. Preconditions: steps are not negative; the sum of all sizes, each rounded up to its
// alignment, fits in size_t.
ArenaPlan PlanArena(std::span<const ArenaValue> values);

// What no plan can be below: the largest sum of the sizes that are alive at one step.
size_t ArenaLowerBound(std::span<const ArenaValue> values);

}  // namespace fuselite
