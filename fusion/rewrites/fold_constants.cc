#include <algorithm>

#include "fusion/graph/evaluate.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// int8 weights dequantized to float32 grow fourfold; what grows more is better made at each run.
constexpr size_t kMaxGrowth = 4;
constexpr size_t kSmallBytes = 4096;

bool SmallEnough(const Graph& graph, const Node& node) {
  size_t from = 0, to = 0;
  for (ValueId v : node.inputs) from += v == kNone ? 0 : graph.value(v).info.bytes();
  for (ValueId v : node.outputs) to += graph.value(v).info.bytes();
  return to <= std::max(kMaxGrowth * from, kSmallBytes);
}

bool Foldable(const Graph& graph, const Node& node) {
  const bool constant = std::ranges::all_of(
      node.inputs, [&](ValueId v) { return v == kNone || graph.value(v).info.constant(); });
  const bool free = std::ranges::none_of(
      node.outputs, [&](ValueId v) { return graph.value(v).observed || graph.value(v).variable; });
  return constant && free && SmallEnough(graph, node);
}

}  // namespace

bool FoldConstants(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Foldable(graph, graph.node(id))) return false;
  if (!context.Allows(graph.Describe(id).outputs)) return false;
  Result<std::vector<Value>> values = Evaluate(graph, id);
  if (!values.ok()) return false;
  const Node node = graph.node(id);
  graph.Remove(id);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    graph.value(node.outputs[i]) = std::move((*values)[i]);
  }
  context.Record(internal::Join("fold constant ", node.op->name), node.host_nodes);
  return true;
}

}  // namespace fuselite::fusion
