// The projections to queries, keys and values read the same rows. As one layer they quantize these
// once; attention, rotary embedding and caches take their parts out of the wider rows. So do the
// gate and what it is multiplied by, where that is worth a step of their own for the product: by
// weights in blocks or of halves and the like (0.98 and 0.86 of a token's time with one and two
// threads), but not with dynamic range, whose emitted tails take it along (1.04). Float weights
// would be copied for nothing (1.00), and so would those of int8 layers, whose rows are bytes
// already: three of 192 or 768 channels take 0.99 to 1.00 of their time as one with 16 rows and
// more, 0.94 to 0.98 with up to 4, before somebody takes the parts out of the wider rows.
#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/split/split.h"
#include "runtime/memory/pages.h"

namespace fuselite::fusion {
namespace {

using kernels::FullyConnectedParams;

// A layer of float32 rows with constant weights that are small integers or halves: one that
// quantizes its rows at each run, or takes the time of reading the weights of a few rows. Neither
// reads nor writes state, and so can be computed elsewhere.
bool IsProjection(const Graph& graph, NodeId id) {
  const bool plain = Is(graph, id, "FULLY_CONNECTED");
  if (!plain && !Is(graph, id, "FUSELITE_BLOCKWISE_FULLY_CONNECTED") &&
      !Is(graph, id, "FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED")) {
    return false;
  }
  if (graph.producer(graph.node(id).outputs[0]) != id) return false;
  const kernels::OpDescription op = graph.Describe(id);
  const TensorInfo& weights = op.inputs[1];
  if (!op.tail.empty() || op.inputs[0].type != DataType::kFloat32 ||
      (plain && weights.type != DataType::kInt8)) {
    return false;
  }
  const auto constant = [](const TensorInfo& info) { return info.absent() || info.constant(); };
  return std::all_of(op.inputs.begin() + 1, op.inputs.end(), constant);
}

// Whether what reads `value` as input `i` takes rows out of wider ones, or copies them in any case.
bool TakesRows(const Graph& graph, NodeId reader, int i) {
  return Is(graph, reader, "FUSELITE_ATTENTION") ||
         (i == 0 && Is(graph, reader, "FUSELITE_ROTARY")) ||
         (i == 1 && Is(graph, reader, "DYNAMIC_UPDATE_SLICE"));
}

// Whether attention alone reads `value`, or what prepares its operands: rotary embedding and
// caches. Reshapes may stand between; before attention they leave the rows as they are.
bool GoesToAttention(const Graph& graph, ValueId value) {
  if (graph.value(value).observed || graph.consumers(value).empty()) return false;
  const auto goes = [&](NodeId reader) {
    const Node& node = graph.node(reader);
    if (node.op->reshapes) {
      const ValueId reshaped = node.outputs[0];
      const Shape &from = graph.value(value).info.shape, &to = graph.value(reshaped).info.shape;
      const NodeId next = graph.SingleConsumer(reshaped);
      const bool keeps = to.rank() > 0 && to.dim(-1) == from.dim(-1);
      return (keeps || (next != kNone && !Is(graph, next, "FUSELITE_ATTENTION"))) &&
             GoesToAttention(graph, reshaped);
    }
    const auto input = std::ranges::find(node.inputs, value) - node.inputs.begin();
    return TakesRows(graph, reader, static_cast<int>(input));
  };
  return std::ranges::all_of(graph.consumers(value), goes,
                             [](const auto& consumer) { return consumer.node; });
}

// Whether the constants can stand one below the other: in whole bytes, and with a scale each where
// either has one.
bool Stackable(const TensorInfo& a, const TensorInfo& b) {
  const auto in_bytes = [](const TensorInfo& info) {
    return info.elements() * BitWidth(info.type) % 8 == 0;
  };
  return a.type == b.type && a.shape.rank() == b.shape.rank() &&
         std::ranges::equal(a.shape.dims().subspan(std::min(a.shape.rank(), 1)),
                            b.shape.dims().subspan(std::min(b.shape.rank(), 1))) &&
         in_bytes(a) && in_bytes(b) && a.quantization.empty() == b.quantization.empty();
}

// Whether `other`, which reads the same rows, is `first` with other weights.
bool Alike(const Graph& graph, NodeId first, NodeId other) {
  const Node &a = graph.node(first), &b = graph.node(other);
  const auto &p = a.params.as<FullyConnectedParams>(), &q = b.params.as<FullyConnectedParams>();
  const kernels::OpDescription x = graph.Describe(first), y = graph.Describe(other);
  return a.op == b.op && p.activation == q.activation && p.keep_num_dims == q.keep_num_dims &&
         p.asymmetric_quantize_inputs == q.asymmetric_quantize_inputs &&
         std::equal(x.inputs.begin() + 1, x.inputs.end(), y.inputs.begin() + 1, y.inputs.end(),
                    Stackable);
}

// The MUL to which functions of one operand lead from what the layer gives; kNone where there is
// none.
NodeId GateBehind(const Graph& graph, NodeId layer) {
  ValueId value = graph.node(layer).outputs[0];
  for (NodeId id = graph.SingleUse(value); id != kNone; id = graph.SingleUse(value)) {
    const Node& node = graph.node(id);
    if (IsBare(graph, id, "MUL")) return id;
    if (!node.op->elementwise || node.inputs.size() != 1) return kNone;
    value = node.outputs[0];
  }
  return kNone;
}

// Whether both go to attention, or to the same product behind layers that are worth it.
bool GoTogether(const Graph& graph, NodeId first, NodeId other) {
  const auto goes = [&](NodeId id) { return GoesToAttention(graph, graph.node(id).outputs[0]); };
  if (goes(first) && goes(other)) return true;
  const NodeId gate = GateBehind(graph, first);
  return gate != kNone && !Is(graph, first, "FULLY_CONNECTED") && gate == GateBehind(graph, other);
}

// The layers that can be one, `first` foremost; none where another runs before it, or where it is
// read elsewhere.
std::vector<NodeId> ProjectionsBeside(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes;
  const ValueId x = graph.node(first).inputs[0];
  for (const auto& [reader, inputs] : graph.consumers(x)) {
    if (IsProjection(graph, reader) && Alike(graph, first, reader) &&
        GoTogether(graph, first, reader)) {
      nodes.push_back(reader);
    }
  }
  std::ranges::sort(nodes, [&](NodeId a, NodeId b) { return graph.Precedes(a, b); });
  if (nodes.empty() || nodes.front() != first) return {};
  return nodes;
}

// Input `i` of the nodes, constants with a row for each unit, one below the other.
ValueId Stack(Graph& graph, const std::vector<NodeId>& nodes, int i) {
  TensorInfo joined = graph.value(graph.node(nodes[0]).inputs[i]).info;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  size_t size = 0;
  for (const NodeId id : nodes) size += graph.value(graph.node(id).inputs[i]).info.bytes();
  std::vector<std::byte, PageAllocator<std::byte>> bytes;
  bytes.reserve(size);
  int32_t units = 0;
  for (const NodeId id : nodes) {
    const TensorInfo& info = graph.value(graph.node(id).inputs[i]).info;
    const auto* const from = static_cast<const std::byte*>(info.data);
    bytes.insert(bytes.end(), from, from + info.bytes());
    units += info.shape[0];
    const Quantization& q = info.quantization;
    if (q.empty()) continue;
    const bool each = q.per_channel();
    for (int32_t unit = 0; unit < info.shape[0]; ++unit) {
      scales.push_back(q.scales[each ? unit : 0]);
      zero_points.push_back(q.zero_points.empty() ? 0 : q.zero_points[each ? unit : 0]);
    }
  }
  joined.data = nullptr;
  joined.shape.set(0, units);
  joined.quantization = {.scales = std::move(scales), .zero_points = std::move(zero_points)};
  return graph.AddConstant(std::move(joined), bytes, "joined");
}

// The layers as one whose output is not yet there, and the sizes of its parts.
Node Joined(Graph& graph, const std::vector<NodeId>& nodes, std::vector<int32_t>* sizes) {
  Node node = graph.node(nodes[0]);
  node.host_nodes = MergeHostNodes(graph, nodes);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone) node.inputs[i] = Stack(graph, nodes, static_cast<int>(i));
  }
  for (const NodeId id : nodes) {
    sizes->push_back(graph.value(graph.node(id).outputs[0]).info.shape.dim(-1));
  }
  return node;
}

}  // namespace

bool JoinProjections(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsProjection(graph, id)) return false;
  const std::vector<NodeId> nodes = ProjectionsBeside(graph, id);
  if (nodes.size() < 2) return false;
  std::vector<int32_t> sizes;
  Node layer = Joined(graph, nodes, &sizes);
  const ValueId first = graph.node(id).outputs[0];
  Shape shape = graph.value(first).info.shape;
  const int last = shape.rank() - 1;
  shape.set(last, graph.value(layer.inputs[1]).info.shape[0]);
  const ValueId whole = AddShaped(graph, first, shape);
  layer.outputs = {whole};
  if (!context.AcceptsInsteadOf(graph.Describe(id), graph.Describe(layer))) return false;
  const int32_t axis[] = {last};
  Node split =
      MakeNode("SPLIT_V", {whole, AddInts(graph, sizes, "sizes"), AddInts(graph, axis, "axis")});
  split.params.as<kernels::SplitParams>().num_splits = static_cast<int32_t>(nodes.size());
  for (const NodeId node : nodes) split.outputs.push_back(graph.node(node).outputs[0]);
  split.host_nodes = layer.host_nodes;
  context.Record("join projections", layer.host_nodes);
  for (const NodeId node : nodes) {
    if (node != id) graph.Remove(node);
  }
  graph.InsertBefore(id, std::move(layer));
  graph.Replace(id, std::move(split));
  return true;
}

}  // namespace fuselite::fusion
