// A kernel whole, by one thread.
#pragma once

#include "runtime/execution/kernel.h"

namespace fuselite {

// All units of all phases, one after the other.
inline Status RunWhole(const Kernel& kernel, const KernelArgs& args) {
  for (int phase = 0; phase < kernel.phases(); ++phase) {
    FUSELITE_RETURN_IF_ERROR(kernel.Run(args, phase, 0, kernel.units(phase)));
  }
  return Status();
}

}  // namespace fuselite
