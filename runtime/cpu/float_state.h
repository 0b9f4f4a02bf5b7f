// The control bits of this thread's floating-point unit: rounding, flushing of denormals, which
// exceptions trap.
#pragma once

#include <cstdint>

namespace fuselite {

namespace internal {

// Without the sticky flags that tell what has happened.
uint64_t ReadFloatState();
void WriteFloatState(uint64_t state);

}  // namespace internal

// While it lives the thread rounds to the nearest, flushes nothing and traps nothing, whatever the
// host has chosen: results are the same in every host, and what is proven of float code when a
// kernel is built holds when it runs. Then the host's state is back, its sticky flags as they were.
class DefaultFloatState {
 public:
  DefaultFloatState();
  ~DefaultFloatState();
  DefaultFloatState(const DefaultFloatState&) = delete;
  DefaultFloatState& operator=(const DefaultFloatState&) = delete;

 private:
  uint64_t before_;  // with the sticky flags
};

}  // namespace fuselite
