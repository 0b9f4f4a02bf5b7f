// What one model may ask of the machine, for whoever opens files of strangers: a file of 750 bytes
// suffices for a run of minutes in gigabytes, rightly by its shapes.
#pragma once

#include <span>

#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite {

// Limits on one graph, or on one partition of a delegate, each 0 where there is none. Both are
// numbers of doubles, since shapes can ask for more than 64 bits count.
struct Budget {
  // Bytes of the values and the scratch that exist at the same time. The file's own constants are
  // not counted, which are as large as the file.
  double max_memory = 0;
  // Multiply-adds of one run, or elements written by operators that have none (OperatorDef::cost).
  // The passes of a loop are not known beforehand: its body counts once.
  double max_multiply_adds = 0;

  // kOverBudget, with the number asked for and the limit.
  Status CheckMemory(double bytes) const;
  // Checks `values` alone: what an operation gives, before tables as long as an output's sides are
  // made for it.
  Status CheckMemory(std::span<const TensorInfo> values) const;
  Status CheckMultiplyAdds(double count) const;
};

// Bytes of the machine's physical memory, or of the control group's limit where that is less; 0
// where the system tells neither.
double MachineMemory();

}  // namespace fuselite
