// The projections to queries, keys and values read the same rows. As one layer they quantize these
// once; attention, rotary embedding and caches take their parts out of the wider rows.
#include <algorithm>
#include <cstring>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/split/split.h"

namespace fuselite::fusion {
namespace {

using kernels::FullyConnectedParams;

// A layer of float32 rows with constant int8 weights: one that quantizes them at each run.
bool IsProjection(const Graph& graph, NodeId id) {
  if (!Is(graph, id, "FULLY_CONNECTED") || !graph.node(id).tail.empty()) return false;
  const kernels::OpDescription op = graph.Describe(id);
  const bool biased = op.has_input(2);
  return op.inputs[0].type == DataType::kFloat32 && op.inputs[1].constant() &&
         op.inputs[1].type == DataType::kInt8 && op.inputs[1].shape.rank() == 2 &&
         op.outputs[0].type == DataType::kFloat32 && (!biased || op.inputs[2].constant());
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
    if (node.op->reshapes && node.tail.empty()) {
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
                             [](const auto& consumer) { return consumer.first; });
}

bool SameRows(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() &&
         std::ranges::equal(a.dims().first(a.rank() - 1), b.dims().first(b.rank() - 1));
}

// Whether `other` is `first` with other weights.
bool Alike(const Graph& graph, NodeId first, NodeId other) {
  const Node &a = graph.node(first), &b = graph.node(other);
  const auto &p = a.params.as<FullyConnectedParams>(), &q = b.params.as<FullyConnectedParams>();
  const auto biased = [&](NodeId id) { return graph.Describe(id).has_input(2); };
  return a.version == b.version && p.activation == q.activation &&
         p.weights_format == q.weights_format && p.keep_num_dims == q.keep_num_dims &&
         p.asymmetric_quantize_inputs == q.asymmetric_quantize_inputs &&
         biased(first) == biased(other) &&
         SameRows(graph.value(a.outputs[0]).info.shape, graph.value(b.outputs[0]).info.shape);
}

// The layers that can be one, `first` foremost; none where another runs before it, or where it is
// read elsewhere.
std::vector<NodeId> ProjectionsBeside(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes;
  const ValueId x = graph.node(first).inputs[0];
  for (const auto& [reader, inputs] : graph.consumers(x)) {
    if (!IsProjection(graph, reader) || graph.node(reader).inputs[0] != x ||
        !Alike(graph, first, reader) || !GoesToAttention(graph, graph.node(reader).outputs[0])) {
      continue;
    }
    nodes.push_back(reader);
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
  std::vector<std::byte> bytes;
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
  node.inputs[1] = Stack(graph, nodes, 1);
  if (graph.Describe(nodes[0]).has_input(2)) node.inputs[2] = Stack(graph, nodes, 2);
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
