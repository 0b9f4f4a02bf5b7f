#include "fusion/graph/cost.h"

#include "kernels/evaluation.h"

namespace fuselite::fusion {

double OperationCost(const kernels::OpDescription& op) {
  const auto outputs = static_cast<double>(op.outputs[0].elements());
  return kernels::Cost(op) + outputs * static_cast<double>(op.tail.stages.size());
}

double NodeCost(const Graph& graph, NodeId id) { return OperationCost(graph.Describe(id)); }

double GraphCost(const Graph& graph) {
  double cost = 0;
  for (NodeId id : graph.order()) cost += NodeCost(graph, id);
  return cost;
}

}  // namespace fuselite::fusion
