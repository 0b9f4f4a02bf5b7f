// From a graph whose rewrites are done to an Executable.
#pragma once

#include <memory>

#include "fusion/compile.h"
#include "fusion/plan/storage.h"
#include "runtime/executable.h"

namespace fuselite::fusion {

// Builds every node's kernel at its place in the order, from the plan that `planner` has for it,
// and describes the steps in `report`. Of its times, the kernels' have the packing in them.
Result<std::shared_ptr<const Executable>> Lower(const Graph& graph, const StoragePlan& plan,
                                                Planner& planner, PackedStore& store,
                                                CompileReport& report);

}  // namespace fuselite::fusion
