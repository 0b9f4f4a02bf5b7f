#include <algorithm>
#include <numeric>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "fusion/stages.h"

namespace fuselite::fusion {
namespace {

// A RESHAPE between a layer and the elementwise node that alone reads it. None is needed where the
// node's other operand has more dimensions, of size 1: `before` and `after` are the same then.
struct Between {
  NodeId reshape = kNone;
  ValueId before = kNone, after = kNone;  // what the layer gives, and the same reshaped
};

std::optional<Between> FindBetween(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.op->elementwise || node.tail_inputs > 0) return std::nullopt;
  const TensorInfo& out = graph.value(node.outputs[0]).info;
  // What the tail of a layer takes as it is stays: it would only go from one layer to the other.
  const auto fuses = [&](ValueId v) {
    return TailOwnerOf(graph, id, v) != kNone && graph.value(v).info.shape == out.shape;
  };
  if (std::ranges::any_of(node.inputs, fuses)) return std::nullopt;
  for (const ValueId after : node.inputs) {
    if (graph.SingleConsumer(after) != id) continue;
    if (TailOwnerOf(graph, id, after) != kNone &&
        graph.value(after).info.elements() == out.elements()) {
      return Between{kNone, after, after};
    }
    const NodeId reshape = graph.producer(after);
    if (reshape == kNone || !graph.node(reshape).op->reshapes) continue;
    const ValueId before = graph.node(reshape).inputs[0];
    const bool same = graph.value(after).info.shape == out.shape &&
                      graph.value(before).info.quantization == graph.value(after).info.quantization;
    if (same && TailOwnerOf(graph, reshape, before) != kNone)
      return Between{reshape, before, after};
  }
  return std::nullopt;
}

// The shape in which an operand that broadcasts to `shape` broadcasts to `source`, of as many
// elements, with the same elements meeting. nullopt where a dimension of either is cut by the other
// and the operand repeats along only one part of it.
std::optional<Shape> Under(const Shape& operand, const Shape& shape, const Shape& source) {
  const int missing = shape.rank() - operand.rank();
  Shape under;
  int d = 0;
  int64_t rest = 1;  // of dimension d - 1 of `shape`, that `source` has yet to come to
  bool varies = false;
  for (const int32_t size : source.dims()) {
    int64_t open = size, varying = 1;
    while (open > 1) {
      if (rest == 1) {
        varies = d >= missing && operand[d - missing] != 1;
        rest = shape[d++];
      }
      const int64_t common = std::gcd(open, rest);
      if (common != open && common != rest) return std::nullopt;
      open /= common;
      rest /= common;
      if (varies) varying *= common;
    }
    if (varying != 1 && varying != size) return std::nullopt;
    under.push_back(static_cast<int32_t>(varying));
  }
  return under;
}

// What the node's inputs are on the layer's side of the RESHAPE; nullopt where one cannot be.
std::optional<std::vector<Shape>> ShapesBefore(const Graph& graph, const Node& node,
                                               const Between& between) {
  const Shape& shape = graph.value(node.outputs[0]).info.shape;
  const Shape& source = graph.value(between.before).info.shape;
  std::vector<Shape> shapes;
  for (const ValueId v : node.inputs) {
    const TensorInfo& info = graph.value(v).info;
    if (v != between.after && info.quantization.per_channel()) return std::nullopt;
    const std::optional<Shape> under = Under(info.shape, shape, source);
    if (!under) return std::nullopt;
    shapes.push_back(info.elements() == 1 ? info.shape : *under);
  }
  return shapes;
}

kernels::OpDescription Reshaped(kernels::OpDescription op, const std::vector<Shape>& inputs,
                                const Shape& output) {
  for (size_t i = 0; i < inputs.size(); ++i) op.inputs[i].shape = inputs[i];
  op.outputs[0].shape = output;
  return op;
}

// `v` under another shape of as many elements, made before `at`.
ValueId UnderShape(Graph& graph, NodeId at, ValueId v, const Shape& shape) {
  if (graph.value(v).info.shape == shape) return v;
  if (graph.value(v).info.constant()) {
    Value constant = graph.value(v);
    constant.info.shape = shape;
    constant.host_tensor = kNone;
    return graph.AddValue(std::move(constant));
  }
  const std::vector<int> host_nodes = graph.node(at).host_nodes;
  return Reshaped(graph, at, v, shape, host_nodes);
}

}  // namespace

bool SinkReshape(Graph& graph, NodeId id, RewriteContext& context) {
  const std::optional<Between> between = FindBetween(graph, id);
  if (!between) return false;
  Node node = graph.node(id);
  const std::optional<std::vector<Shape>> shapes = ShapesBefore(graph, node, *between);
  const Shape source = graph.value(between->before).info.shape;
  if (!shapes) return false;
  const kernels::OpDescription now = graph.Describe(id);
  if (!context.AcceptsInsteadOf(now, Reshaped(now, *shapes, source))) return false;
  const std::vector<int> of_reshape =
      between->reshape == kNone ? node.host_nodes : graph.node(between->reshape).host_nodes;
  context.Record(internal::Join("move RESHAPE behind ", node.op->name), node.host_nodes);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId& v = node.inputs[i];
    v = v == between->after ? between->before : UnderShape(graph, id, v, (*shapes)[i]);
  }
  const ValueId out = node.outputs[0];
  const ValueId result = AddShaped(graph, out, source);
  node.outputs = {result};
  graph.InsertBefore(id, std::move(node));
  Node behind = ReshapeTo(graph, result, Shape(graph.value(out).info.shape));
  behind.outputs = {out};
  behind.host_nodes = of_reshape;
  graph.Replace(id, std::move(behind));
  if (between->reshape != kNone) graph.Remove(between->reshape);
  return true;
}

}  // namespace fuselite::fusion
