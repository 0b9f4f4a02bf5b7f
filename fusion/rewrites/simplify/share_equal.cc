// Exporters write for each layer what all have in common: masks, tables of positions, a projection
// of the same features. Such nodes are computed once.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "fusion/graph/description_hash.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// Readers of one value among which an equal node is looked for, so that compiling takes linear
// time.
constexpr size_t kMostReaders = 256;

// The first input that is known only at run time; kNone where there is none.
ValueId RunTimeInput(const Graph& graph, const Node& node) {
  for (const ValueId input : node.inputs) {
    if (input != kNone && !graph.value(input).info.constant()) return input;
  }
  return kNone;
}

// Whether the node gives the same whenever its inputs are, and does nothing else. (Operators of
// chance and of resources have no kernel, and so are in no graph.)
bool IsPure(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto is_state = [&](ValueId v) { return v != kNone && graph.value(v).variable; };
  return !node.outputs.empty() && std::ranges::none_of(node.inputs, is_state) &&
         std::ranges::none_of(node.outputs, is_state);
}

// Whether both are constants of the same bytes, by what HashOf() looks at: whole weights that stand
// in a file twice are not looked through.
bool SameConstants(const TensorInfo& one, const TensorInfo& other) {
  if (!one.constant() || !other.constant() || one.bytes() != other.bytes()) return false;
  return one.data == other.data ||
         (one.bytes() <= kHashedByContent && std::memcmp(one.data, other.data, one.bytes()) == 0);
}

// Asked before the hash of both descriptions, as it tells most pairs apart: an unrolled network has
// dozens of SLICEs of one value.
bool SameInputs(const Graph& graph, const Node& one, const Node& other) {
  const auto same = [&](ValueId a, ValueId b) {
    if (a == b || a == kNone || b == kNone) return a == b;
    return SameConstants(graph.value(a).info, graph.value(b).info);
  };
  return std::ranges::equal(one.inputs, other.inputs, same);
}

bool Equal(const Graph& graph, const Node& one, const Node& other) {
  return SameInputs(graph, one, other) &&
         HashOf(graph.Describe(one)) == HashOf(graph.Describe(other));
}

bool EqualInSomeOrder(const Graph& graph, const Node& one, const Node& other) {
  if (Equal(graph, one, other)) return true;
  if (!other.op->commutes) return false;
  Node exchanged = other;
  std::swap(exchanged.inputs[0], exchanged.inputs[1]);
  return Equal(graph, one, exchanged);
}

// Whether the node goes into one step with the only one that reads it: computed twice, it takes no
// pass over memory of its own there.
bool JoinsItsReader(const Graph& graph, const Node& node) {
  if (!node.op->elementwise) return false;
  const NodeId reader = graph.SingleUse(node.outputs[0]);
  if (reader == kNone || !graph.node(reader).op->elementwise) return false;
  const Shape &own = graph.value(node.outputs[0]).info.shape,
              &whole = graph.value(graph.node(reader).outputs[0]).info.shape;
  return own == whole;
}

// A node before `id` that gives the same; kNone where there is none.
NodeId EarlierEqual(const Graph& graph, NodeId id, ValueId input) {
  const Node& node = graph.node(id);
  for (const Consumers::Reader& reader : graph.consumers(input)) {
    const Node& other = graph.node(reader.node);
    if (other.op != node.op || !graph.Precedes(reader.node, id) || !IsPure(graph, reader.node)) {
      continue;
    }
    if (EqualInSomeOrder(graph, other, node)) return reader.node;
  }
  return kNone;
}

}  // namespace

bool ShareEqual(Graph& graph, NodeId id, RewriteContext& context) {
  const ValueId input = RunTimeInput(graph, graph.node(id));
  if (input == kNone || graph.consumers(input).size() < 2 ||
      graph.consumers(input).size() > kMostReaders || !IsPure(graph, id)) {
    return false;
  }
  const auto observed = [&](ValueId output) { return graph.value(output).observed; };
  if (std::ranges::any_of(graph.node(id).outputs, observed) ||
      JoinsItsReader(graph, graph.node(id))) {
    return false;
  }
  const NodeId earlier = EarlierEqual(graph, id, input);
  if (earlier == kNone) return false;
  context.Record("compute once for several", MergeHostNodes(graph, {earlier, id}));
  const std::vector<ValueId> given = graph.node(earlier).outputs, outputs = graph.node(id).outputs;
  graph.Remove(id);
  for (size_t i = 0; i < outputs.size(); ++i) graph.ReplaceUses(outputs[i], given[i]);
  return true;
}

}  // namespace fuselite::fusion
