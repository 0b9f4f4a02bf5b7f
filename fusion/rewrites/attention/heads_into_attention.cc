// Attention over [batch, head, row, channel], which TRANSPOSEs make of what layers give, reads
// their rows, in which the heads lie side by side, where they are.
#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/attention/heads.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/attention/attention.h"

namespace fuselite::fusion {
namespace {

// Whether each head is a row of its own in a part of wider rows (a layer may give queries, keys and
// values for one head after the other): the heads are not side by side.
bool HeadsApart(const Graph& graph, const RowsOfHeads& rows) {
  const ValueId from = BeforeReshapes(graph, rows.source);
  const NodeId id = graph.producer(from);
  if (id == kNone || !graph.node(id).op->places || graph.node(id).op->places_inputs) return false;
  const Shape& shape = graph.value(from).info.shape;
  return rows.heads > 1 && shape.rank() > 0 && shape.dim(-1) == rows.channels;
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

}  // namespace

bool HeadsIntoAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "FUSELITE_ATTENTION")) return false;
  Node node = graph.node(id);
  auto& params = node.params.as<kernels::AttentionParams>();
  if (params.heads_inside) return false;
  std::vector<RowsOfHeads> operands;
  for (int i = 0; i < 3; ++i) {
    const auto rows = RowsBehind(graph, node.inputs[i], i == 1 && !params.keys_by_rows);
    if (!rows) return false;
    operands.push_back(*rows);
  }
  const RowsOfHeads &q = operands[0], &v = operands[2];
  const std::optional<std::vector<Shape>> masks = MasksOverHeads(graph, node, q.batches);
  if (!masks) return false;
  params.heads_inside = params.keys_by_rows = true;
  params.heads = q.heads;
  const bool apart = std::ranges::any_of(
      operands, [&](const RowsOfHeads& rows) { return HeadsApart(graph, rows); });
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
