// Moving TRANSPOSEs leaves some that do the same to the same value: a pixel shuffle that one layer
// reads and a sum behind it, too.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// In which order a TRANSPOSE gives its input's elements. Precondition: there are some.
ElementOrder OrderGiven(const Graph& graph, const Node& transpose) {
  const Shape& shape = graph.value(transpose.inputs[0]).info.shape;
  return *ElementOrder::OfTranspose(shape, PermutationOf(graph, transpose));
}

// The TRANSPOSE before `id` that gives the elements of `value`, if need be reshaped, in `order`;
// kNone where there is none.
NodeId EarlierLike(const Graph& graph, NodeId id, ValueId value, const ElementOrder& order) {
  for (const auto& reader : graph.consumers(value)) {
    const Node& node = graph.node(reader.node);
    if (node.op->reshapes) {
      const NodeId found = EarlierLike(graph, id, node.outputs[0], order);
      if (found != kNone) return found;
    }
    if (!IsBare(graph, reader.node, "TRANSPOSE") || !graph.Precedes(reader.node, id)) continue;
    if (graph.producer(node.outputs[0]) != reader.node) continue;
    if (OrderGiven(graph, node).pieces() == order.pieces()) return reader.node;
  }
  return kNone;
}

}  // namespace

bool ShareTransposes(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "TRANSPOSE")) return false;
  const Node& node = graph.node(id);
  const ValueId out = node.outputs[0];
  if (graph.value(out).info.elements() == 0) return false;
  const ElementOrder order = OrderGiven(graph, node);
  if (order.unchanged() || graph.producer(out) != id) return false;
  const ValueId source = BeforeReshapes(graph, node.inputs[0]);
  const NodeId earlier = EarlierLike(graph, id, source, order);
  if (earlier == kNone) return false;
  const ValueId given = graph.node(earlier).outputs[0];
  if (graph.value(given).info.quantization != graph.value(out).info.quantization) return false;
  const std::vector<int> host_nodes = node.host_nodes;
  const std::vector<int> concerned = HostNodesWithMoves(graph, id);
  Node reshape = ReshapeTo(graph, given, Shape(graph.value(out).info.shape));
  reshape.outputs = {out};
  reshape.host_nodes = host_nodes;
  graph.Replace(id, std::move(reshape));
  context.Record("transpose once for several", concerned);
  return true;
}

}  // namespace fuselite::fusion
