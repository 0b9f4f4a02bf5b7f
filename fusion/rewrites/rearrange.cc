#include "fusion/rewrites/rearrange.h"

#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"

namespace fuselite::fusion {

std::vector<int32_t> PermutationOf(const Graph& graph, const Node& transpose) {
  std::vector<int32_t> permutation = *IntConstant(graph, transpose.inputs[1]);
  for (int32_t& d : permutation) {
    if (d < 0) d += static_cast<int32_t>(permutation.size());
  }
  return permutation;
}

bool Rearranges(const Graph& graph, NodeId id) {
  return id != kNone && (graph.node(id).op->reshapes || Is(graph, id, "TRANSPOSE"));
}

ValueId AfterRearranging(const Graph& graph, ValueId value) {
  for (NodeId id = graph.SingleUse(value); Rearranges(graph, id); id = graph.SingleUse(value)) {
    value = graph.node(id).outputs[0];
  }
  return value;
}

ValueId BeforeReshapes(const Graph& graph, ValueId value) {
  for (NodeId id = graph.producer(value); id != kNone; id = graph.producer(value)) {
    const Node& node = graph.node(id);
    if (!node.op->reshapes) break;
    value = node.inputs[0];
  }
  return value;
}

RearrangingChain ChainTo(const Graph& graph, ValueId value) {
  RearrangingChain chain;
  chain.source = value;
  for (NodeId id = graph.producer(value); Rearranges(graph, id);
       id = graph.producer(chain.source)) {
    chain.nodes.push_back(id);
    chain.transposes += Is(graph, id, "TRANSPOSE");
    chain.source = graph.node(id).inputs[0];
  }
  while (!chain.nodes.empty() && !Is(graph, chain.nodes.back(), "TRANSPOSE")) {
    chain.source = graph.node(chain.nodes.back()).outputs[0];
    chain.nodes.pop_back();
  }
  return chain;
}

std::vector<int> HostNodesWithChains(const Graph& graph, NodeId id) {
  std::vector<NodeId> nodes = {id};
  for (const ValueId input : graph.node(id).inputs) {
    if (input == kNone) continue;
    const RearrangingChain chain = ChainTo(graph, input);
    nodes.insert(nodes.end(), chain.nodes.begin(), chain.nodes.end());
  }
  return MergeHostNodes(graph, nodes);
}

std::vector<int> HostNodesWithMoves(const Graph& graph, NodeId id) {
  std::vector<NodeId> nodes = {id};
  for (const ValueId input : graph.node(id).inputs) {
    NodeId maker = input == kNone ? kNone : graph.producer(input);
    while (Rearranges(graph, maker)) {
      nodes.push_back(maker);
      maker = graph.producer(graph.node(maker).inputs[0]);
    }
  }
  return MergeHostNodes(graph, nodes);
}

std::optional<ElementOrder> OrderOf(const Graph& graph, const RearrangingChain& chain) {
  const int64_t elements = graph.value(chain.source).info.elements();
  if (elements == 0) return std::nullopt;
  ElementOrder order(elements);
  for (auto id = chain.nodes.rbegin(); id != chain.nodes.rend(); ++id) {
    const Node& node = graph.node(*id);
    if (node.op->name != "TRANSPOSE") continue;
    const Shape& shape = graph.value(node.inputs[0]).info.shape;
    if (!order.Transpose(shape, PermutationOf(graph, node))) return std::nullopt;
  }
  return order;
}

std::optional<Origin> OriginOf(const Graph& graph, ValueId value) {
  const RearrangingChain chain = ChainTo(graph, value);
  if (chain.transposes == 0) return std::nullopt;
  if (graph.value(chain.source).info.quantization != graph.value(value).info.quantization) {
    return std::nullopt;
  }
  std::optional<ElementOrder> order = OrderOf(graph, chain);
  if (!order) return std::nullopt;
  return Origin{chain.source, *std::move(order)};
}

TransposePlan PlanTranspose(std::span<const ElementOrder::Piece> pieces) {
  std::vector<ElementOrder::Piece> sorted(pieces.begin(), pieces.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.stride > b.stride; });
  TransposePlan plan;
  for (const auto& piece : sorted) plan.shape.push_back(static_cast<int32_t>(piece.size));
  for (const auto& piece : pieces) {
    plan.result.push_back(static_cast<int32_t>(piece.size));
    const auto place = std::ranges::find(sorted, piece.stride, &ElementOrder::Piece::stride);
    plan.permutation.push_back(static_cast<int32_t>(place - sorted.begin()));
  }
  return plan;
}

ValueId AddInts(Graph& graph, std::span<const int32_t> values, std::string name) {
  const auto count = static_cast<int32_t>(values.size());
  return graph.AddConstant({.type = DataType::kInt32, .shape = Shape({count})},
                           std::as_bytes(values), std::move(name));
}

ValueId AddFloats(Graph& graph, std::span<const float> values, const Shape& shape,
                  std::string name) {
  return graph.AddConstant({.type = DataType::kFloat32, .shape = shape}, std::as_bytes(values),
                           std::move(name));
}

ValueId AddShaped(Graph& graph, ValueId like, const Shape& shape) {
  Value value;
  value.info = graph.value(like).info;
  value.info.shape = shape;
  value.info.data = nullptr;
  value.name = graph.value(like).name;
  return graph.AddValue(std::move(value));
}

Shape WithOnesInFront(const Shape& shape, int rank) {
  Shape all;
  for (int d = shape.rank(); d < rank; ++d) all.push_back(1);
  for (const int32_t size : shape.dims()) all.push_back(size);
  return all;
}

Shape WithRank(const Shape& shape, int rank) {
  Shape last;
  for (int d = std::max(0, shape.rank() - rank); d < shape.rank(); ++d) last.push_back(shape[d]);
  return last;
}

Node ReshapeTo(Graph& graph, ValueId from, const Shape& shape) {
  return MakeNode("RESHAPE", {from, AddInts(graph, shape.dims(), "shape")});
}

void InsertReshape(Graph& graph, NodeId at, ValueId from, ValueId to,
                   const std::vector<int>& host_nodes) {
  Node reshape = ReshapeTo(graph, from, Shape(graph.value(to).info.shape));
  reshape.outputs = {to};
  reshape.host_nodes = host_nodes;
  graph.InsertBefore(at, std::move(reshape));
}

ValueId Reshaped(Graph& graph, NodeId at, ValueId from, const Shape& shape,
                 const std::vector<int>& host_nodes) {
  const ValueId to = AddShaped(graph, from, shape);
  InsertReshape(graph, at, from, to, host_nodes);
  return to;
}

Node Rearranged(Graph& graph, NodeId at, ValueId from, const ElementOrder& order, ValueId out,
                const std::vector<int>& host_nodes) {
  const auto insert = [&](Node node, const Shape& result) {
    from = AddShaped(graph, out, result);
    node.outputs = {from};
    node.host_nodes = host_nodes;
    graph.InsertBefore(at, std::move(node));
  };
  if (!order.unchanged()) {
    const TransposePlan plan = PlanTranspose(order.pieces());
    insert(ReshapeTo(graph, from, plan.shape), plan.shape);
    insert(MakeNode("TRANSPOSE", {from, AddInts(graph, plan.permutation, "permutation")}),
           plan.result);
  }
  Node last = ReshapeTo(graph, from, Shape(graph.value(out).info.shape));
  last.outputs = {out};
  last.host_nodes = host_nodes;
  return last;
}

}  // namespace fuselite::fusion
