// Kernels of functions of bytes that are given as tables of 256 entries.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// The kernel that maps input 0 to the output, bytes both, with vectors: by permutations of the
// table where the machine has them, else by limits or lines where there are some, else by a tail's
// lookup. Rows may be pitched, and the output may lie in the input's place.
Result<std::unique_ptr<Kernel>> MakeByteMap(const OpDescription& op, const std::string& name,
                                            std::vector<uint8_t> table, int knee, Isa isa);

// The plan of such a kernel. `table` is asked for when it is built, and lines are looked for then:
// most functions of bytes become a part of a tail before that.
Result<KernelPlan> PlanByteMap(
    const OpDescription& op, const std::string& name, int knee, Isa isa,
    std::function<Result<std::vector<uint8_t>>(const OpDescription&)> table);

}  // namespace fuselite::kernels
