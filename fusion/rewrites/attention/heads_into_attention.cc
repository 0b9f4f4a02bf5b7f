// Attention over [batch, head, row, channel], which TRANSPOSEs make of what layers give, reads
// their rows, in which the heads lie side by side, where they are.
#include <algorithm>
#include <array>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/attention/attention.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;
using Pieces = std::vector<Piece>;

// What TRANSPOSEs make an operand of attention from: [batches, rows, heads, channels].
struct Rows {
  ValueId source = kNone;
  int32_t batches = 0, rows = 0, heads = 0, channels = 0;

  // With the heads of a row side by side, or each a row of its own.
  Shape shape(bool heads_apart) const {
    if (heads_apart) return {batches, rows, heads, channels};
    return {batches, rows, heads * channels};
  }
};

// Whether each head is a row of its own in a part of wider rows (a layer may give queries, keys and
// values for one head after the other): the heads are not side by side.
bool HeadsApart(const Graph& graph, const Rows& rows) {
  const ValueId from = BeforeReshapes(graph, rows.source);
  const NodeId id = graph.producer(from);
  if (id == kNone || !graph.node(id).op->places || graph.node(id).op->places_inputs) return false;
  const Shape& shape = graph.value(from).info.shape;
  return rows.heads > 1 && shape.rank() > 0 && shape.dim(-1) == rows.channels;
}

// `value` is [..., rows, channels], or [..., channels, rows] where it is turned.
std::optional<Rows> RowsBehind(const Graph& graph, ValueId value, bool turned) {
  const RearrangingChain chain = ChainTo(graph, value);
  const Shape& shape = graph.value(value).info.shape;
  if (shape.rank() < 3) return std::nullopt;
  const int32_t rows = shape.dim(turned ? -1 : -2), channels = shape.dim(turned ? -2 : -1);
  const std::optional<ElementOrder> order = OrderOf(graph, chain);
  if (!order) return std::nullopt;
  const int32_t all_heads = static_cast<int32_t>(shape.elements(0, shape.rank() - 2));
  const auto split = order->Split({all_heads, shape.dim(-2), shape.dim(-1)});
  if (!split) return std::nullopt;
  // A single row, a decoder's next token, and a single head lie the same way without a TRANSPOSE.
  const Pieces& outer = (*split)[0];
  const bool several = !outer.empty() && outer.back().stride == channels;
  const auto heads = several ? static_cast<int32_t>(outer.back().size) : 1;
  const int32_t batches = all_heads / heads;
  Pieces expected_outer;
  if (batches > 1) expected_outer.push_back({batches, int64_t{rows} * heads * channels});
  if (heads > 1) expected_outer.push_back({heads, channels});
  const Pieces of_rows = rows == 1 ? Pieces{} : Pieces{{rows, int64_t{heads} * channels}};
  if (outer != expected_outer || (*split)[turned ? 2 : 1] != of_rows ||
      (*split)[turned ? 1 : 2] != Pieces{{channels, 1}}) {
    return std::nullopt;
  }
  return Rows{chain.source, batches, rows, heads, channels};
}

// The value under `shape`: what `rows.source` was reshaped from, if its rows are the same, which
// then may be part of a wider one.
ValueId UnderShape(Graph& graph, NodeId at, const Rows& rows, const Shape& shape,
                   const std::vector<int>& hosts) {
  ValueId from = BeforeReshapes(graph, rows.source);
  const Shape& before = graph.value(from).info.shape;
  if (before.rank() == 0 || before.dim(-1) != shape.dim(-1)) from = rows.source;
  if (graph.value(from).info.shape == shape) return from;
  return Reshaped(graph, at, from, shape, hosts);
}

constexpr int kFirstMask = kernels::AttentionShape::kFirstMask;

// The masks' shapes over [batch, head, row, key], to which the kernel compares them. nullopt where
// scores have other dimensions, over which they could mean something else: of a single batch those
// in front of the heads are ones.
std::optional<std::vector<Shape>> MasksOverHeads(const Graph& graph, const Node& node,
                                                 int32_t batches) {
  const bool alike = graph.value(node.inputs[0]).info.shape.rank() == 4;
  std::vector<Shape> shapes;
  for (const ValueId mask : std::span(node.inputs).subspan(kFirstMask)) {
    if (!alike && batches != 1) return std::nullopt;
    const Shape& shape = graph.value(mask).info.shape;
    shapes.push_back(alike ? shape : WithRank(shape, 4));
  }
  return shapes;
}

// [B, row, head, channel] as `out`, [B, head, row, channel] under any leading dimensions.
Node HeadsOutside(Graph& graph, NodeId at, ValueId from, ValueId out,
                  const std::vector<int>& hosts) {
  const Shape inside = graph.value(from).info.shape;
  const ElementOrder order = *ElementOrder::OfTranspose(inside, std::array{0, 2, 1, 3});
  return Rearranged(graph, at, from, order, out, hosts);
}

}  // namespace

bool HeadsIntoAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "FUSELITE_ATTENTION")) return false;
  Node node = graph.node(id);
  auto& params = node.params.as<kernels::AttentionParams>();
  if (params.heads_inside) return false;
  std::vector<Rows> operands;
  for (int i = 0; i < 3; ++i) {
    const auto rows = RowsBehind(graph, node.inputs[i], i == 1 && !params.keys_by_rows);
    if (!rows) return false;
    operands.push_back(*rows);
  }
  const Rows &q = operands[0], &v = operands[2];
  const std::optional<std::vector<Shape>> masks = MasksOverHeads(graph, node, q.batches);
  if (!masks) return false;
  params.heads_inside = params.keys_by_rows = true;
  params.heads = q.heads;
  const bool apart =
      std::ranges::any_of(operands, [&](const Rows& rows) { return HeadsApart(graph, rows); });
  kernels::OpDescription op = graph.Describe(node);
  for (int i = 0; i < 3; ++i) op.inputs[i].shape = operands[i].shape(apart);
  for (size_t i = 0; i < masks->size(); ++i) op.inputs[kFirstMask + i].shape = (*masks)[i];
  op.outputs[0].shape = {q.batches, q.rows, q.heads, v.channels};
  if (!context.AcceptsInsteadOf(graph.Describe(id), op)) return false;
  for (int i = 0; i < 3; ++i) {
    node.inputs[i] = UnderShape(graph, id, operands[i], operands[i].shape(apart), node.host_nodes);
  }
  for (size_t i = 0; i < masks->size(); ++i) {
    ValueId& mask = node.inputs[kFirstMask + i];
    if (graph.value(mask).info.shape == (*masks)[i]) continue;
    mask = Reshaped(graph, id, mask, (*masks)[i], node.host_nodes);
  }
  const ValueId out = node.outputs[0];
  const ValueId result = AddShaped(graph, out, op.outputs[0].shape);
  node.outputs = {result};
  const std::vector<int> hosts = node.host_nodes;
  context.Record("read heads where they lie", HostNodesWithMoves(graph, id));
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, HeadsOutside(graph, id, result, out, hosts));
  return true;
}

}  // namespace fuselite::fusion
