#include <algorithm>
#include <map>

#include "fusion/cost.h"
#include "fusion/evaluate.h"
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "fusion/stages.h"
#include "kernels/reduce/reduce.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;

bool IsReduction(const Node& node) {
  const std::string_view op = node.op->name;
  return op == "MEAN" || op == "SUM" || op == "REDUCE_MAX" || op == "REDUCE_MIN";
}

// Whether the node reduces all elements to one.
bool ReducesAll(const Graph& graph, const Node& node) {
  return IsReduction(node) && graph.value(node.outputs[0]).info.elements() == 1;
}

bool MayMove(const Graph& graph, const Node& node) {
  if (!node.tail.empty() || node.outputs.size() != 1) return false;
  return ReducesAll(graph, node) || (node.op->elementwise && node.op->name != kChain);
}

// Whether a TRANSPOSE comes on every way from `value`, through what it can be moved behind.
class MeetsTransposes {
 public:
  explicit MeetsTransposes(const Graph& graph) : graph_(graph) {}

  bool From(ValueId value, int depth = 0) {
    if (graph_.value(value).observed || depth == kMaxDepth) return false;
    const auto [known, added] = known_.try_emplace(value, true);
    if (!added) return known->second;
    const auto meets = [&](const auto& reader) { return Through(reader.first, depth + 1); };
    return known_[value] = std::ranges::all_of(graph_.consumers(value), meets);
  }

 private:
  // Patterns are a few nodes long; the limit is for graphs that are made to be deep.
  static constexpr int kMaxDepth = 64;

  bool Through(NodeId id, int depth) {
    const Node& node = graph_.node(id);
    if (node.op->name == "TRANSPOSE" || ReducesAll(graph_, node)) return true;
    const bool passes = MayMove(graph_, node) || node.op->reshapes;
    return passes && From(node.outputs[0], depth);
  }

  const Graph& graph_;
  std::map<ValueId, bool> known_;
};

// Whether a layer gives what `id` alone reads behind a TRANSPOSE: before that its tail can take it,
// if need be behind a RESHAPE (SinkReshape).
bool FollowsLayer(const Graph& graph, NodeId id) {
  return std::ranges::any_of(graph.node(id).inputs, [&](ValueId v) {
    if (ChainTo(graph, v).transposes == 0) return false;
    NodeId reader = id;
    while (graph.SingleConsumer(v) == reader) {
      const NodeId maker = graph.producer(v);
      if (maker == kNone || (!Is(graph, maker, "TRANSPOSE") && !graph.node(maker).op->reshapes)) {
        return TailHostOf(graph, reader, v) != kNone;
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
  if (missing < 0) return std::nullopt;
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
  if (own.size() > Shape::kMaxRank) return std::nullopt;
  for (const Piece& piece : own) turned.parts.push_back(static_cast<int32_t>(piece.size));
  for (const Piece& piece : sorted) {
    turned.order.push_back(static_cast<int32_t>(std::ranges::find(own, piece) - own.begin()));
  }
  return turned;
}

// A node in the place of which the same stands on the source.
struct Move {
  ValueId source = kNone;
  std::optional<ElementOrder> order;
  std::vector<std::optional<Turned>> operands;  // nullopt: the source in the node's order
  std::vector<ValueId> sources;
};

std::optional<Move> PlanMove(const Graph& graph, const Node& node, const Shape& shape) {
  Move move;
  const size_t inputs = IsReduction(node) ? 1 : node.inputs.size();
  for (size_t i = 0; i < inputs; ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNone || graph.value(v).info.shape != shape) continue;
    const RearrangingChain chain = ChainTo(graph, v);
    if (chain.transposes == 0) continue;
    const std::optional<ElementOrder> order = OrderOf(graph, chain);
    if (!order || order->unchanged() || order->pieces().size() > Shape::kMaxRank) {
      return std::nullopt;
    }
    if (move.order && move.order->pieces() != order->pieces()) return std::nullopt;
    if (!move.order) move.source = chain.source;
    move.order = order;
  }
  if (!move.order) return std::nullopt;
  const Shape& source = graph.value(move.source).info.shape;
  for (size_t i = 0; i < inputs; ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNone) return std::nullopt;
    const RearrangingChain chain = ChainTo(graph, v);
    const bool moved = chain.transposes > 0 && graph.value(v).info.shape == shape;
    if (moved && graph.value(chain.source).info.quantization != graph.value(v).info.quantization) {
      return std::nullopt;
    }
    move.sources.push_back(moved ? chain.source : v);
    move.operands.emplace_back();
    if (moved) continue;
    move.operands.back() = Turn(*move.order, shape, graph.value(v).info.shape, source);
    const std::optional<Turned>& turned = move.operands.back();
    // A value that is made at run time is reshaped, but not moved.
    if (!turned || (!graph.value(v).info.constant() && !std::ranges::is_sorted(turned->order))) {
      return std::nullopt;
    }
    if (graph.value(v).info.quantization.per_channel()) return std::nullopt;
  }
  return move;
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
  if (!IsReduction(graph.node(id))) op.outputs[0].shape = source;
  return op;
}

// The mean of everything is that of the source.
void MoveReduction(Graph& graph, NodeId id, const Move& move) {
  Node node = graph.node(id);
  const ValueId out = node.outputs[0];
  const int rank = graph.value(move.source).info.shape.rank();
  std::vector<int32_t> axes(rank);
  for (int d = 0; d < rank; ++d) axes[d] = d;
  node.inputs = {move.source, AddInts(graph, axes, "axes")};
  node.params.as<kernels::ReduceParams>().keep_dims = false;
  const ValueId scalar = AddShaped(graph, out, Shape());
  node.outputs = {scalar};
  const std::vector<int> host_nodes = node.host_nodes;
  graph.InsertBefore(id, std::move(node));
  Node reshape = ReshapeTo(graph, scalar, Shape(graph.value(out).info.shape));
  reshape.outputs = {out};
  reshape.host_nodes = host_nodes;
  graph.Replace(id, std::move(reshape));
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
      Node reshape = ReshapeTo(graph, node.inputs[i], source);
      node.inputs[i] = AddShaped(graph, node.inputs[i], source);
      reshape.outputs = {node.inputs[i]};
      reshape.host_nodes = host_nodes;
      graph.InsertBefore(id, std::move(reshape));
    }
  }
  const ValueId result = AddShaped(graph, out, source);
  node.outputs = {result};
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, Rearranged(graph, id, result, *move.order, out, host_nodes));
}

}  // namespace

bool SinkTranspose(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& node = graph.node(id);
  if (!MayMove(graph, node)) return false;
  const ValueId out = node.outputs[0];
  const bool reduces = IsReduction(node);
  const Shape shape = graph.value(reduces ? node.inputs[0] : out).info.shape;
  if (shape.elements() == 0) return false;
  const std::optional<Move> move = PlanMove(graph, node, shape);
  if (!move) return false;
  if (!reduces && !FollowsLayer(graph, id) && !MeetsTransposes(graph).From(out)) return false;
  if (!reduces && !context.AcceptsInsteadOf(graph.Describe(id), OnSource(graph, id, *move))) {
    return false;
  }
  context.Record(internal::Join("move TRANSPOSE behind ", node.op->name), node.host_nodes);
  if (reduces) {
    MoveReduction(graph, id, *move);
  } else {
    MoveElementwise(graph, id, *move);
  }
  return true;
}

}  // namespace fuselite::fusion
