#include "fusion/rewrites/replace.h"

#include <algorithm>

#include "fusion/match.h"
#include "fusion/stages.h"

namespace fuselite::fusion {
namespace {

// Whether one of the nodes makes what `reader` reads.
bool Makes(const Graph& graph, const std::vector<NodeId>& nodes, const Node& reader) {
  return std::ranges::any_of(reader.inputs, [&](ValueId input) {
    return input != kNone && std::ranges::count(nodes, graph.producer(input)) > 0;
  });
}

}  // namespace

Node MakeNode(std::string_view name, std::vector<ValueId> inputs) {
  Node node;
  node.op = kernels::FindOperator(name);
  kernels::SetDefaults(node.op->fields, node.params.data());
  node.inputs = std::move(inputs);
  return node;
}

Node MakeChain(const Graph&, ValueId x, std::vector<kernels::TailStage> stages) {
  Node node;
  node.op = kernels::FindOperator(kChain);
  node.inputs = {x};
  node.tail.stages = std::move(stages);
  return node;
}

bool ReplacePattern(Graph& graph, NodeId id, const std::vector<NodeId>& others, Node node,
                    std::string_view what, RewriteContext& context) {
  if (Makes(graph, others, node)) return false;
  node.outputs = graph.node(id).outputs;
  std::vector<NodeId> replaced = others;
  replaced.push_back(id);
  node.host_nodes = MergeHostNodes(graph, replaced);
  const auto accepts = [&](const auto& op) { return context.AcceptsComposite(op); };
  if (!ReplaceIf(graph, id, std::move(node), accepts)) return false;
  context.Record(what, graph.node(id).host_nodes);
  for (NodeId other : others) graph.Remove(other);
  return true;
}

}  // namespace fuselite::fusion
