// What a graph is worth: for the decision whether a partition repays taking it.
#pragma once

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// Multiply-adds, or elements where there are none (OperatorDef::cost), the tail's stages included
// at an element each. Operations that only rename bytes cost nothing.
double OperationCost(const kernels::OpDescription& op);
double NodeCost(const Graph& graph, NodeId id);
double GraphCost(const Graph& graph);

}  // namespace fuselite::fusion
