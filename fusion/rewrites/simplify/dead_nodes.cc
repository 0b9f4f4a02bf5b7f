#include <algorithm>

#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// A node that writes the host's state is alive whoever reads it. State is both read and written
// through an input marked as variable.
bool Needed(const Graph& graph, const Node& node, const std::vector<bool>& read) {
  const bool output = std::ranges::any_of(node.outputs, [&](ValueId v) {
    return read[v] || graph.value(v).observed || graph.value(v).variable;
  });
  return output || std::ranges::any_of(node.inputs, [&](ValueId v) {
           return v != kNone && graph.value(v).variable;
         });
}

}  // namespace

int RemoveDeadNodes(Graph& graph) {
  std::vector<bool> read(graph.value_count(), false);
  const std::vector<NodeId> order = graph.order();
  int removed = 0;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (!Needed(graph, graph.node(*it), read)) {
      graph.Remove(*it);
      ++removed;
      continue;
    }
    for (ValueId v : graph.node(*it).inputs) {
      if (v != kNone) read[v] = true;
    }
  }
  return removed;
}

}  // namespace fuselite::fusion
