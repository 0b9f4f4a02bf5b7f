// Attention over caches of 8 bits reads the bytes: as floats a whole cache would be written in each
// run, however little of it is filled.
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {

bool CachesIntoAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FUSELITE_ATTENTION")) return false;
  Node node = graph.node(id);
  std::vector<NodeId> nodes = {id};
  for (const int i : {1, 2}) {
    const NodeId dequantize = ProducerIs(graph, node.inputs[i], "DEQUANTIZE");
    if (dequantize == kNone) return false;
    node.inputs[i] = graph.node(dequantize).inputs[0];
    nodes.push_back(dequantize);
  }
  SortUnique(&nodes);
  node.host_nodes = MergeHostNodes(graph, nodes);
  const kernels::OpDescription before = graph.Describe(id);
  const auto accepts = [&](const auto& op) { return context.AcceptsInsteadOf(before, op); };
  if (!ReplaceIf(graph, id, std::move(node), accepts)) return false;
  context.Record("read caches of bytes", graph.node(id).host_nodes);
  return true;
}

}  // namespace fuselite::fusion
