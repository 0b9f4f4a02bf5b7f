#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// What the last node stands for from now on: those of the chain that nobody else needs, too.
std::vector<int> HostNodesOf(const Graph& graph, const RearrangingChain& chain) {
  std::vector<NodeId> own = {chain.nodes[0]};
  for (size_t i = 1; i < chain.nodes.size(); ++i) {
    if (graph.SingleConsumer(graph.node(chain.nodes[i]).outputs[0]) == kNone) break;
    own.push_back(chain.nodes[i]);
  }
  return MergeHostNodes(graph, own);
}

// Removes those of the chain that nobody reads now that the last node does not: rewrites behind
// this one ask whether a value has a single reader.
void RemoveUnread(Graph& graph, const RearrangingChain& chain) {
  for (size_t i = 1; i < chain.nodes.size(); ++i) {
    const ValueId made = graph.node(chain.nodes[i]).outputs[0];
    if (graph.value(made).observed || !graph.consumers(made).empty()) return;
    graph.Remove(chain.nodes[i]);
  }
}

}  // namespace

bool MergeTransposes(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "TRANSPOSE")) return false;
  const ValueId out = graph.node(id).outputs[0];
  const RearrangingChain chain = ChainTo(graph, out);
  if (chain.transposes == 0) return false;
  const TensorInfo& info = graph.value(out).info;
  if (graph.value(chain.source).info.quantization != info.quantization) return false;
  const std::optional<ElementOrder> order = OrderOf(graph, chain);
  if (!order) return false;
  if (chain.transposes == 1 && !order->unchanged()) return false;
  const std::vector<int> host_nodes = HostNodesOf(graph, chain);
  const std::vector<int> concerned = HostNodesWithChains(graph, id);
  graph.Replace(id, Rearranged(graph, id, chain.source, *order, out, host_nodes));
  RemoveUnread(graph, chain);
  context.Record(order->unchanged() ? "reshape instead of transposing" : "merge transposes",
                 concerned);
  return true;
}

}  // namespace fuselite::fusion
