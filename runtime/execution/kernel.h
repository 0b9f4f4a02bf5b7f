// One operation compiled for its shapes: what a step of an Executable runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/support/status.h"

namespace fuselite {

// The operands of one run. Pointers are dense or pitched as the description that the kernel was
// built from says, and only aligned to their element. Inputs and outputs do not overlap, unless
// the kernel says that it computes in place.
struct KernelArgs {
  // Null entries for absent optional operands. Read only, but for variables that hold an operator's
  // state (OperatorDef::state_inputs).
  const void* const* inputs;
  void* const* outputs;
  std::byte* scratch;  // scratch_bytes() of this thread's own, aligned to kAlignment
  std::byte* shared;   // shared_bytes() of all threads together, aligned to kAlignment
  // The number of the run, one more than that of the run before; null where there is none. It may
  // decide the order of the work, never a result.
  const uint32_t* run = nullptr;

  // Of two runs, one behind the other, one is odd.
  bool odd_run() const { return run != nullptr && *run % 2 == 1; }
};

// Immutable after construction and safe to run from many threads at once. Single-threaded inside:
// work is a list of independent units, and the caller splits it. The result does not depend on
// how: a unit's bits are a function of the unit alone.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Implementation, types, tile and ISA, as `explain` prints it: "conv f32 14x32 avx512 jit".
  virtual std::string_view name() const = 0;

  // Phases run one after the other, with a barrier between: phase 1 may read in `shared` what
  // any unit of phase 0 wrote.
  virtual int phases() const { return 1; }
  // The units of one phase. 0: nothing to do.
  virtual int64_t units(int phase) const = 0;
  // The fewest units worth handing to a thread of their own.
  virtual int64_t grain(int /*phase*/) const { return 1; }

  // The input in whose memory output 0 may lie, element on element, or -1. A unit then reads of
  // that input only what it writes itself; no other input may share the memory.
  virtual int in_place_input() const { return -1; }

  // Neither survives a run; both are undefined when phase 0 begins.
  virtual size_t scratch_bytes() const { return 0; }
  virtual size_t shared_bytes() const { return 0; }

  // Computes units [begin, end) of `phase`. Errors are those that only values can cause (an index
  // out of range); outputs are then undefined.
  virtual Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const = 0;
};

}  // namespace fuselite
