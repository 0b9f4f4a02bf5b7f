#include "fusion/graph/splice.h"

namespace fuselite::fusion {

void Splice(const Graph& body, std::map<ValueId, ValueId> places,
            const std::vector<int>& host_nodes, Graph& graph) {
  const auto place = [&](ValueId v) {
    if (v == kNone) return kNone;
    const auto [entry, copied] = places.try_emplace(v, kNone);
    if (copied) {
      Value value = body.value(v);
      value.host_tensor = kNone;
      value.observed = value.input = value.variable = false;
      entry->second = graph.AddValue(std::move(value));
    }
    return entry->second;
  };
  for (NodeId id : body.order()) {
    Node node = body.node(id);
    for (ValueId& v : node.inputs) v = place(v);
    for (ValueId& v : node.outputs) v = place(v);
    node.host_nodes = host_nodes;
    graph.AddNode(std::move(node));
  }
}

}  // namespace fuselite::fusion
