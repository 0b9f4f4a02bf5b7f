// Attention whose heads share keys and values in groups reads each of them once: BROADCAST_TO or
// TILE, by which converters write them out for every head, goes away. Reshapes and TRANSPOSEs may
// follow it.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/attention/attention.h"

namespace fuselite::fusion {
namespace {

// A node that repeats along one dimension, of size 1 before: each run of `run` elements stands
// `times` in a row.
struct Repetition {
  NodeId node = kNone;
  int64_t times = 1, run = 1;
};

std::optional<Repetition> RepetitionBy(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const Shape& from = graph.value(node.inputs[0]).info.shape;
  const Shape& to = graph.value(node.outputs[0]).info.shape;
  std::optional<Repetition> found;
  for (int d = 0; d < to.rank(); ++d) {
    const int source = d - (to.rank() - from.rank());
    const int32_t before = source < 0 ? 1 : from[source];
    if (to[d] == before) continue;
    if (found || before != 1) return std::nullopt;
    found = {.node = id, .times = to[d], .run = to.elements(d + 1, to.rank())};
  }
  return found;
}

// That from which only reshapes lead to `value`.
std::optional<Repetition> RepetitionBehind(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(BeforeReshapes(graph, value));
  const bool repeats = Is(graph, id, "BROADCAST_TO") || Is(graph, id, "TILE");
  return repeats ? RepetitionBy(graph, id) : std::nullopt;
}

// Keys or values of each head, as they are before each of them is repeated.
struct Shared {
  Repetition repetition;
  ValueId source = kNone;
  ElementOrder order;  // of the source, which `shape` then has
  Shape shape;
};

// `value` is [..., head, row, channel], or with the last two turned.
std::optional<Shared> SharedHeads(const Graph& graph, ValueId value) {
  const RearrangingChain chain = ChainTo(graph, value);
  const std::optional<ElementOrder> order = OrderOf(graph, chain);
  const std::optional<Repetition> repetition = RepetitionBehind(graph, chain.source);
  Shape shape = graph.value(value).info.shape;
  const int head = shape.rank() - 3;
  if (!order || !repetition || head < 0 || shape[head] % repetition->times != 0) {
    return std::nullopt;
  }
  const auto times = static_cast<int32_t>(repetition->times);
  shape.set(head, shape[head] / times);
  const auto groups = static_cast<int32_t>(shape.elements(0, head + 1));
  const auto once = order->Without({groups, times, shape.dim(-2), shape.dim(-1)}, 1,
                                   {repetition->times, repetition->run});
  const ValueId source = graph.node(repetition->node).inputs[0];
  if (!once) return std::nullopt;
  return Shared{*repetition, source, *once, shape};
}

}  // namespace

bool GroupsIntoAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FUSELITE_ATTENTION")) return false;
  Node node = graph.node(id);
  if (node.params.as<kernels::AttentionParams>().heads_inside) return false;
  const auto keys = SharedHeads(graph, node.inputs[1]);
  const auto values = SharedHeads(graph, node.inputs[2]);
  if (!keys || !values) return false;
  kernels::OpDescription op = graph.Describe(id);
  op.inputs[1].shape = keys->shape;
  op.inputs[2].shape = values->shape;
  if (!context.AcceptsInsteadOf(graph.Describe(id), op)) return false;
  std::vector<int> concerned = HostNodesWithMoves(graph, id);
  node.host_nodes = MergeHostNodes(graph, {keys->repetition.node, values->repetition.node, id});
  for (const int i : {1, 2}) {
    const Shared& shared = i == 1 ? *keys : *values;
    const ValueId once = AddShaped(graph, node.inputs[i], shared.shape);
    graph.InsertBefore(id,
                       Rearranged(graph, id, shared.source, shared.order, once, node.host_nodes));
    node.inputs[i] = once;
  }
  concerned.insert(concerned.end(), node.host_nodes.begin(), node.host_nodes.end());
  context.Record("share keys and values within groups of heads", concerned);
  graph.Replace(id, std::move(node));
  return true;
}

}  // namespace fuselite::fusion
