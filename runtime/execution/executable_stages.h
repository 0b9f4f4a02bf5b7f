// Which phases are shared among threads, and what each has to wait for. Part of building an
// Executable.
#pragma once

#include <span>
#include <vector>

#include "runtime/execution/executable.h"

namespace fuselite::internal {

// The phases of all steps as stages. A stage waits only where it touches memory that a stage since
// the last wait writes, or writes what one reads; both for values and for reused arena memory.
std::vector<Stage> PlanStages(std::span<const Value> values, std::span<const Step> steps,
                              std::span<const size_t> shared_offsets);

}  // namespace fuselite::internal
