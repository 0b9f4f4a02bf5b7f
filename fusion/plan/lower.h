// From a graph whose rewrites are done to an Executable.
#pragma once

#include <memory>

#include "fusion/compile.h"
#include "fusion/plan/storage.h"
#include "runtime/executable.h"

namespace fuselite::fusion {

// Builds every node's kernel at its place in the order and describes the steps in `report`.
Result<std::shared_ptr<const Executable>> Lower(const Graph& graph, const StoragePlan& plan,
                                                const kernels::BuildContext& context, bool jit,
                                                CompileReport& report);

}  // namespace fuselite::fusion
