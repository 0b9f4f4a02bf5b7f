// From a graph whose rewrites are done to an Executable.
#pragma once

#include <map>
#include <memory>

#include "fusion/compile.h"
#include "fusion/plan/storage.h"
#include "fusion/plan/strips.h"
#include "runtime/execution/executable.h"

namespace fuselite::fusion {

// Builds every node's kernel at its place in the order, from the plan that `planner` has for it, or
// of the parts that `strips` has for it, and describes the steps in `report`. Of its times, the
// kernels' have the packing in them. With `threads` more than 1 some kernels at a time are built on
// as many, and `store` is asked by all of them. Constants that no step reads are let go of as soon
// as they are packed.
Result<std::shared_ptr<const Executable>> Lower(Graph& graph, const StoragePlan& plan,
                                                std::map<NodeId, Strips>& strips, Planner& planner,
                                                PackedStore& store, int threads,
                                                CompileReport& report);

}  // namespace fuselite::fusion
