// Which nodes several threads compute in strips of rows (fusion/plan/strips.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuselite::fusion {

struct StripLimits {
  // What a strip reads of constants and other values as a whole, at most. All strips read all of
  // it: it has to stay in the L2 of each thread, beside the rows.
  size_t most_weights = 640 << 10;
  // What a thread's share of the widest node reads and writes, at most. It stays in L2; of larger
  // nodes each takes so long that waiting for it does not matter.
  int64_t most_of_step = 512 << 10;
  // What all nodes of a strip read and write, at least: some 2 us of work, twice as long as threads
  // wait for each other.
  int64_t least_of_strip = 48 << 10;
};

}  // namespace fuselite::fusion
