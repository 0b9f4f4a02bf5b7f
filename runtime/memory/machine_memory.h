// What MachineMemory() (budget.h) makes of what the system tells; apart so that tests can hand in
// what no machine has.
#pragma once

#include <iosfwd>

namespace fuselite::internal {

// The lesser of `machine`, 0 where it is not known, and the number that `limit` begins with, if
// any.
double MemoryWithin(double machine, std::istream& limit);

}  // namespace fuselite::internal
