#include <algorithm>

#include "fusion/graph/evaluate.h"
#include "fusion/match.h"
#include "fusion/rewrites/layout/meets_transposes.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "fusion/stages.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;

// Whether a layer gives what `id` alone reads behind a TRANSPOSE: before that its tail can take it,
// if need be behind a RESHAPE (SinkReshape).
bool FollowsLayer(const Graph& graph, NodeId id) {
  return std::ranges::any_of(graph.node(id).inputs, [&](ValueId v) {
    if (ChainTo(graph, v).transposes == 0) return false;
    NodeId reader = id;
    while (graph.SingleConsumer(v) == reader) {
      const NodeId maker = graph.producer(v);
      if (!Rearranges(graph, maker)) {
        return TailOwnerOf(graph, reader, v) != kNone;
      }
      reader = maker;
      v = graph.node(maker).inputs[0];
    }
    return false;
  });
}

// One operand for the source's shape: which dimensions of it the operand has, and how the operand's
// own are put in their order.
struct Turned {
  Shape shape;  // that broadcasts to the source's
  Shape parts;
  std::vector<int32_t> order;
};

// How an operand that broadcasts to `shape`, the elements in `order`, is turned. nullopt where it
// repeats along a part of one of the source's dimensions.
std::optional<Turned> Turn(const ElementOrder& order, const Shape& shape, const Shape& operand,
                           const Shape& source) {
  const auto dimensions = order.Split(shape);
  if (!dimensions) return std::nullopt;
  std::vector<Piece> own;  // of the operand, in its order
  const int missing = shape.rank() - operand.rank();
  for (int d = missing; d < shape.rank(); ++d) {
    if (operand[d - missing] == 1) continue;
    own.insert(own.end(), (*dimensions)[d].begin(), (*dimensions)[d].end());
  }
  Turned turned;
  std::vector<Piece> sorted = own;
  std::ranges::sort(sorted, [](const Piece& a, const Piece& b) { return a.stride > b.stride; });
  int64_t stride = source.elements();
  size_t next = 0;
  for (int d = 0; d < source.rank(); ++d) {
    stride /= source[d];
    int64_t covered = 1;
    for (; next < sorted.size() && sorted[next].stride >= stride; ++next) {
      covered *= sorted[next].size;
    }
    if (covered != 1 && covered != source[d]) return std::nullopt;
    turned.shape.push_back(static_cast<int32_t>(covered));
  }
  if (own.size() > ElementOrder::kMostPieces) return std::nullopt;
  for (const Piece& piece : own) turned.parts.push_back(static_cast<int32_t>(piece.size));
  for (const Piece& piece : sorted) {
    turned.order.push_back(static_cast<int32_t>(std::ranges::find(own, piece) - own.begin()));
  }
  return turned;
}

// A node in the place of which the same stands on the source.
struct Move {
  ValueId source = kNone;
  ElementOrder order{1};
  std::vector<std::optional<Turned>> operands;  // nullopt: the source in the node's order
  std::vector<ValueId> sources;
  bool transposes_operand = false;  // one that is made at run time
};

// Whether a TRANSPOSE that reads `value`, if need be reshaped, puts elements in `order` back.
bool IsUndoneBehind(const Graph& graph, ValueId value, const ElementOrder& order) {
  return std::ranges::any_of(graph.consumers(value), [&](const auto& reader) {
    const Node& node = graph.node(reader.node);
    if (node.op->reshapes) return IsUndoneBehind(graph, node.outputs[0], order);
    if (node.op->name != "TRANSPOSE") return false;
    ElementOrder after = order;
    const Shape& shape = graph.value(node.inputs[0]).info.shape;
    return after.Transpose(shape, PermutationOf(graph, node)) && after.unchanged();
  });
}

// The move to what `base`, one of the inputs, was before it was transposed.
std::optional<Move> PlanMoveTo(const Graph& graph, const Node& node, const Origin& base) {
  const ValueId out = node.outputs[0];
  const Shape& shape = graph.value(out).info.shape;
  const Shape& source = graph.value(base.source).info.shape;
  Move move{.source = base.source, .order = base.order, .operands = {}, .sources = {}};
  for (const ValueId v : node.inputs) {
    const TensorInfo& info = graph.value(v).info;
    const std::optional<Origin> origin = info.shape == shape ? OriginOf(graph, v) : std::nullopt;
    const bool moved = origin && origin->order.pieces() == base.order.pieces();
    move.sources.push_back(moved ? origin->source : v);
    move.operands.emplace_back();
    if (moved) continue;
    if (info.quantization.per_channel()) return std::nullopt;
    move.operands.back() = Turn(base.order, shape, info.shape, source);
    const std::optional<Turned>& turned = move.operands.back();
    if (!turned) return std::nullopt;
    if (info.constant() || std::ranges::is_sorted(turned->order)) continue;
    // One TRANSPOSE, of this operand, has to replace two: those before and behind the node.
    if (move.transposes_operand || !IsUndoneBehind(graph, out, base.order)) return std::nullopt;
    move.transposes_operand = true;
  }
  return move;
}

std::optional<Move> PlanMove(const Graph& graph, const Node& node) {
  for (const ValueId v : node.inputs) {
    if (graph.value(v).info.shape != graph.value(node.outputs[0]).info.shape) continue;
    const std::optional<Origin> origin = OriginOf(graph, v);
    if (!origin || origin->order.unchanged()) continue;
    std::optional<Move> move = PlanMoveTo(graph, node, *origin);
    if (!move || (move->transposes_operand && graph.SingleConsumer(v) == kNone)) continue;
    return move;
  }
  return std::nullopt;
}

// The operand in the source's order and shape.
ValueId TurnedOperand(Graph& graph, NodeId at, ValueId from, const Turned& turned,
                      const std::vector<int>& host_nodes) {
  const auto insert = [&](Node node, const Shape& shape) {
    const ValueId out = AddShaped(graph, from, shape);
    node.outputs = {out};
    node.host_nodes = host_nodes;
    const NodeId id = graph.InsertBefore(at, std::move(node));
    // A constant at once, so that what folds constants into weights still sees one.
    Result<std::vector<Value>> values = NotFound("no constant");
    if (graph.value(from).info.constant()) values = Evaluate(graph, id);
    if (values.ok()) {
      graph.Remove(id);
      graph.value(out) = std::move((*values)[0]);
    }
    from = out;
  };
  if (!std::ranges::is_sorted(turned.order)) {
    Shape result;
    for (const int32_t d : turned.order) result.push_back(turned.parts[d]);
    insert(ReshapeTo(graph, from, turned.parts), turned.parts);
    insert(MakeNode("TRANSPOSE", {from, AddInts(graph, turned.order, "permutation")}), result);
  }
  if (graph.value(from).info.shape != turned.shape) {
    insert(ReshapeTo(graph, from, turned.shape), turned.shape);
  }
  return from;
}

// The node on the source, for questions: shapes alone.
kernels::OpDescription OnSource(const Graph& graph, NodeId id, const Move& move) {
  kernels::OpDescription op = graph.Describe(id);
  const Shape& source = graph.value(move.source).info.shape;
  for (size_t i = 0; i < move.operands.size(); ++i) {
    op.inputs[i].shape = move.operands[i] ? move.operands[i]->shape : source;
  }
  op.outputs[0].shape = source;
  return op;
}

void MoveElementwise(Graph& graph, NodeId id, const Move& move) {
  Node node = graph.node(id);
  const ValueId out = node.outputs[0];
  const std::vector<int> host_nodes = node.host_nodes;
  const Shape source = graph.value(move.source).info.shape;
  for (size_t i = 0; i < move.operands.size(); ++i) {
    node.inputs[i] = move.sources[i];
    if (move.operands[i]) {
      node.inputs[i] = TurnedOperand(graph, id, node.inputs[i], *move.operands[i], host_nodes);
    } else if (graph.value(node.inputs[i]).info.shape != source) {
      node.inputs[i] = Reshaped(graph, id, node.inputs[i], source, host_nodes);
    }
  }
  const ValueId result = AddShaped(graph, out, source);
  node.outputs = {result};
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, Rearranged(graph, id, result, move.order, out, host_nodes));
}

// The elementwise nodes that lead, alone, from something transposed to SOFTMAX `id`: a scale, a
// mask; the first one first, SOFTMAX last. Empty where nothing was transposed.
std::vector<NodeId> WayToSoftmax(const Graph& graph, NodeId id) {
  constexpr size_t kMost = 4;
  std::vector<NodeId> way = {id};
  while (way.size() <= kMost) {
    const Node& node = graph.node(way.front());
    NodeId before = kNone;
    for (const ValueId v : node.inputs) {
      const Shape& shape = graph.value(node.outputs[0]).info.shape;
      if (graph.value(v).info.shape != shape || graph.SingleUse(v) == kNone) continue;
      if (OriginOf(graph, v)) return way;
      const NodeId maker = graph.producer(v);
      if (maker != kNone && IsElementwiseAlone(graph.node(maker))) before = maker;
    }
    if (before == kNone) break;
    way.insert(way.begin(), before);
  }
  return {};
}

// Whether what was transposed has the rows of `shape`, if in another order.
bool KeepsRows(const Graph& graph, const Move& move, const Shape& shape) {
  const int32_t columns = shape.dim(-1);
  if (graph.value(move.source).info.shape.dim(-1) != columns) return false;
  const auto split = move.order.Split(shape);
  return split && (columns == 1 || split->back() == std::vector<Piece>{{columns, 1}});
}

}  // namespace

bool SinkTransposeOfScores(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "SOFTMAX")) return false;
  const ValueId out = graph.node(id).outputs[0];
  if (!MeetsTransposes(graph).From(out)) return false;
  std::vector<int> hosts;
  for (const NodeId moved : WayToSoftmax(graph, id)) {
    const std::optional<Move> move = PlanMove(graph, graph.node(moved));
    if (!move || move->transposes_operand) break;
    if (!KeepsRows(graph, *move, graph.value(out).info.shape)) break;
    if (!context.AcceptsInsteadOf(graph.Describe(moved), OnSource(graph, moved, *move))) break;
    const std::vector<int> concerned = HostNodesWithChains(graph, moved);
    hosts.insert(hosts.end(), concerned.begin(), concerned.end());
    MoveElementwise(graph, moved, *move);
  }
  if (hosts.empty()) return false;
  SortUnique(&hosts);
  context.Record("move TRANSPOSE behind SOFTMAX", hosts);
  return true;
}

bool SinkTranspose(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& node = graph.node(id);
  if (!IsElementwiseAlone(node)) return false;
  const ValueId out = node.outputs[0];
  const std::optional<Move> move = PlanMove(graph, node);
  if (!move) return false;
  const bool follows = !move->transposes_operand && FollowsLayer(graph, id);
  if (!follows && !MeetsTransposes(graph).From(out)) return false;
  if (!context.AcceptsInsteadOf(graph.Describe(id), OnSource(graph, id, *move))) return false;
  context.Record(internal::Join("move TRANSPOSE behind ", node.op->name),
                 HostNodesWithChains(graph, id));
  MoveElementwise(graph, id, *move);
  return true;
}

}  // namespace fuselite::fusion
