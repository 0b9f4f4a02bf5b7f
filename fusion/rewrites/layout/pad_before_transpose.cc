#include <optional>

#include "fusion/match.h"
#include "fusion/rewrites/layout/meets_transposes.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;

// A PAD of the source in the place of one of what TRANSPOSE made of it, whose elements are then put
// in `order`.
struct Padding {
  ValueId source = kNone;
  Shape padded;
  std::vector<int32_t> paddings;  // before and behind each dimension of the source
  ElementOrder order{1};
};

// The dimension of `shape` that is the piece; -1 where none is.
int DimensionOf(const Shape& shape, const Piece& piece) {
  int64_t stride = shape.elements();
  for (int d = 0; d < shape.rank(); ++d) {
    stride /= shape[d];
    if (shape[d] == piece.size && stride == piece.stride) return d;
  }
  return -1;
}

// nullopt where a dimension is padded that is none of the source's.
std::optional<Padding> PlanPadding(const Graph& graph, const Node& node) {
  const TensorInfo& input = graph.value(node.inputs[0]).info;
  const std::optional<Origin> origin = OriginOf(graph, node.inputs[0]);
  if (!origin || origin->order.unchanged()) return std::nullopt;
  Padding padding;
  padding.source = origin->source;
  padding.padded = graph.value(origin->source).info.shape;
  padding.paddings.resize(2 * static_cast<size_t>(padding.padded.rank()));
  padding.order = origin->order;
  const auto own = IntConstant(graph, node.inputs[1]);
  Shape shape = input.shape;  // padded up to dimension d
  for (int d = 0; d < shape.rank(); ++d) {
    const int32_t before = (*own)[2 * d], behind = (*own)[2 * d + 1];
    if (before == 0 && behind == 0) continue;
    const auto dimensions = padding.order.Split(shape);
    if (!dimensions || (*dimensions)[d].size() != 1) return std::nullopt;
    const Piece piece = (*dimensions)[d][0];
    const int at = DimensionOf(padding.padded, piece);
    if (at < 0) return std::nullopt;
    padding.paddings[2 * at] = before;
    padding.paddings[2 * at + 1] = behind;
    padding.order = *padding.order.Without(shape, d, piece, piece.size + before + behind);
    shape.set(d, shape[d] + before + behind);
    padding.padded.set(at, shape[d]);
  }
  return padding;
}

}  // namespace

bool PadBeforeTranspose(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Pads(graph.node(id))) return false;
  const ValueId out = graph.node(id).outputs[0];
  const std::optional<Padding> padding = PlanPadding(graph, graph.node(id));
  if (!padding || !MeetsTransposes(graph).From(out)) return false;
  Node node = graph.node(id);
  const std::vector<int> host_nodes = node.host_nodes;
  const auto rank = static_cast<int32_t>(padding->padded.rank());
  node.inputs[0] = padding->source;
  node.inputs[1] = graph.AddConstant({.type = DataType::kInt32, .shape = Shape({rank, 2})},
                                     std::as_bytes(std::span(padding->paddings)), "paddings");
  const ValueId padded = AddShaped(graph, out, padding->padded);
  node.outputs = {padded};
  const auto accepts = context.AcceptsInsteadOf(graph.Describe(id), graph.Describe(node));
  if (!accepts) return false;
  context.Record(internal::Join("move TRANSPOSE behind ", node.op->name),
                 HostNodesWithChains(graph, id));
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, Rearranged(graph, id, padded, padding->order, out, host_nodes));
  return true;
}

}  // namespace fuselite::fusion
