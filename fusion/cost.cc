#include "fusion/cost.h"

#include "kernels/evaluation.h"

namespace fuselite::fusion {

double NodeCost(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->reshapes) return 0;
  const kernels::OpDescription op = graph.Describe(id);
  const double outputs = op.outputs.empty() ? 0.0 : static_cast<double>(op.outputs[0].elements());
  return kernels::Cost(op) + outputs * static_cast<double>(node.tail.stages.size());
}

double GraphCost(const Graph& graph) {
  double cost = 0;
  for (NodeId id : graph.order()) cost += NodeCost(graph, id);
  return cost;
}

}  // namespace fuselite::fusion
