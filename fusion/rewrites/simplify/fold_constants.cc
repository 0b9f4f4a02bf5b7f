#include <algorithm>

#include "fusion/graph/evaluate.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// int8 weights dequantized to float32 grow fourfold; what grows more is better made at each run,
// but for weights of 4 and 2 bits, which take three times as long as their product with 64 rows
// (AMD Zen 4). Those of large language models, 64 MiB as floats, stay: each would fill much memory.
constexpr size_t kMaxGrowth = 4;
constexpr size_t kSmallBytes = 4096, kLargeWeights = size_t{16} << 20;

bool SmallEnough(const Graph& graph, const Node& node) {
  size_t from = 0, to = 0;
  for (ValueId v : node.inputs) from += v == kNone ? 0 : graph.value(v).info.bytes();
  for (ValueId v : node.outputs) to += graph.value(v).info.bytes();
  const size_t most = node.op->name == std::string_view("DEQUANTIZE") ? kLargeWeights : kSmallBytes;
  return to <= std::max(kMaxGrowth * from, most);
}

bool Foldable(const Graph& graph, const Node& node) {
  const bool constant = std::ranges::all_of(
      node.inputs, [&](ValueId v) { return v == kNone || graph.value(v).info.constant(); });
  const bool free = std::ranges::none_of(
      node.outputs, [&](ValueId v) { return graph.value(v).observed || graph.value(v).variable; });
  return constant && free && SmallEnough(graph, node);
}

// The node's outputs as constants.
Result<std::vector<Value>> Folded(const Graph& graph, NodeId id, Isa isa) {
  const Node& node = graph.node(id);
  if (!node.op->reshapes) return Evaluate(graph, id, isa);
  // The same bytes under another name: those of sparse weights are megabytes.
  Value value = graph.value(node.outputs[0]);
  const Value& source = graph.value(node.inputs[0]);
  value.info.data = source.info.data;
  value.storage = source.storage;
  return std::vector{std::move(value)};
}

}  // namespace

bool FoldConstants(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Foldable(graph, graph.node(id))) return false;
  if (!context.Allows(graph.Describe(id).outputs)) return false;
  Result<std::vector<Value>> values = Folded(graph, id, context.isa());
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
