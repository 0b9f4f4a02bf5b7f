// The invariants of a graph, for tests, debug builds and whoever builds one from outside.
#pragma once

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// Indices are in range; every value that is read is a constant, an input, a variable or made by
// exactly one node earlier in the order; inputs, variables and constants have no producer; outputs
// exist, are observed and distinct; tail operands name inputs of their node. The message names the
// node or the value.
Status Validate(const Graph& graph);

}  // namespace fuselite::fusion
