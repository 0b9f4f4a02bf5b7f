// Rotary position embedding as decoders write it, with x1 and x2 the halves of a head:
//   CONCATENATION(x1 * cos - x2 * sin, x2 * cos + x1 * sin)
// and how it comes to stand where layers leave the heads.
#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/concatenation/concatenation.h"
#include "kernels/placement.h"
#include "kernels/rotary/rotary.h"

namespace fuselite::fusion {
namespace {

using kernels::RotaryParams;

// Nodes may be taken twice.
class Matcher : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  ValueId x = kNone, cos = kNone, sin = kNone;

  bool Run(NodeId concatenation) {
    const NodeId first = Step(In(concatenation, 0), "SUB");
    const NodeId second = Step(In(concatenation, 1), "ADD");
    if (first == kNone || second == kNone) return false;
    const NodeId by_cos = Step(In(first, 0), "MUL"), by_sin = Step(In(first, 1), "MUL");
    if (by_cos == kNone || by_sin == kNone) return false;
    for (int i : {0, 1}) {
      for (int j : {0, 1}) {
        const ValueId x1 = In(by_cos, i), x2 = In(by_sin, j);
        if (!AreHalves(x1, x2)) continue;
        cos = In(by_cos, 1 - i);
        sin = In(by_sin, 1 - j);
        return (IsProduct(In(second, 0), x2, cos) && IsProduct(In(second, 1), x1, sin)) ||
               (IsProduct(In(second, 1), x2, cos) && IsProduct(In(second, 0), x1, sin));
      }
    }
    return false;
  }

 private:
  bool IsProduct(ValueId value, ValueId a, ValueId b) {
    const NodeId id = Step(value, "MUL");
    return id != kNone &&
           ((In(id, 0) == a && In(id, 1) == b) || (In(id, 0) == b && In(id, 1) == a));
  }
  // Whether these are the first and the second half of the rows of one value, which is `x` then.
  bool AreHalves(ValueId first, ValueId second) {
    x = IsHalf(first, 0);
    return x != kNone && IsHalf(second, 1) == x;
  }
  // The value whose rows' half 0 or 1 this is; else kNone.
  ValueId IsHalf(ValueId value, int which) {
    const NodeId id = graph_.producer(value);
    if (id == kNone || !graph_.node(id).tail.empty()) return kNone;
    const auto placement = kernels::FindPlacement(graph_.Describe(id));
    if (!placement.ok() || placement->parts_are_inputs) return kNone;
    const auto& outputs = graph_.node(id).outputs;
    const int index = static_cast<int>(std::ranges::find(outputs, value) - outputs.begin());
    const auto part = std::ranges::find(placement->parts, index, &kernels::PlacedPart::operand);
    const ValueId whole = In(id, placement->whole);
    const Shape &from = graph_.value(whole).info.shape, &to = graph_.value(value).info.shape;
    if (part == placement->parts.end() || from.rank() != to.rank() || from.rank() == 0)
      return kNone;
    Shape half = from;
    half.set(from.rank() - 1, from.dim(-1) / 2);
    const int64_t offset = which * int64_t{half.dim(-1)} * static_cast<int64_t>(sizeof(float));
    if (to != half || part->byte_offset != offset) return kNone;
    nodes.push_back(id);
    return whole;
  }
};

// The dimensions of a table over those of `x`, whose innermost one is the table's.
Shape OverAll(const Shape& table, const Shape& x) {
  Shape all;
  for (int d = table.rank(); d < x.rank(); ++d) all.push_back(1);
  for (const int32_t size : table.dims()) all.push_back(size);
  return all;
}

// The shape of a table over `table`'s dimensions for what TRANSPOSE made x of; nullopt where it has
// to be transposed itself.
std::optional<Shape> BeforeTranspose(const Shape& table, const std::vector<int32_t>& permutation) {
  const int last = table.rank() - 1;
  if (permutation[last] != last && permutation[last] != -1) return std::nullopt;
  int repeats = 0;
  Shape turned = table;
  for (int d = 0; d < last; ++d) {
    turned.set(permutation[d] < 0 ? permutation[d] + last + 1 : permutation[d], table[d]);
    repeats += table[d] == 1;
  }
  if (repeats < last - 1) return std::nullopt;
  return turned;
}

// The same for `from`, of which a reshape made `x`: dimensions in front that both have stay, and
// the table must repeat along the others.
std::optional<Shape> BeforeReshape(const Shape& table, const Shape& x, const Shape& from) {
  Shape result;
  const int last = x.rank() - 1;
  int d = 0;
  for (int i = 0; i + 1 < from.rank(); ++i) {
    while (d < last && x[d] == 1) ++d;
    const bool same = from[i] != 1 && d < last && x[d] == from[i];
    result.push_back(same ? table[d++] : 1);
    if (!same && from[i] != 1) break;
  }
  while (result.rank() + 1 < from.rank()) result.push_back(1);
  for (; d < last; ++d) {
    if (table[d] != 1) return std::nullopt;
  }
  result.push_back(table[last]);
  return result;
}

}  // namespace

bool RecognizeRotary(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONCATENATION") || !graph.node(id).tail.empty()) return false;
  const Node& concatenation = graph.node(id);
  if (concatenation.inputs.size() != 2) return false;
  const auto& params = concatenation.params.as<kernels::ConcatenationParams>();
  const int rank = graph.value(concatenation.outputs[0]).info.shape.rank();
  if (params.axis != -1 && params.axis != rank - 1) return false;
  Matcher match(graph);
  if (!match.Run(id) || !IsFloat(graph, match.x)) return false;
  SortUnique(&match.nodes);
  if (!OnlyReadWithin(graph, match.nodes, id)) return false;
  Node node = MakeNode("FUSELITE_ROTARY", {match.x, match.cos, match.sin});
  node.params.as<RotaryParams>().width = graph.value(match.x).info.shape.dim(-1);
  return ReplacePattern(graph, id, match.nodes, std::move(node), "recognize rotary embedding",
                        context);
}

bool MoveRotaryAhead(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FUSELITE_ROTARY")) return false;
  Node rotary = graph.node(id);
  const ValueId x = rotary.inputs[0], out = rotary.outputs[0];
  const NodeId maker = graph.producer(x);
  if (maker == kNone || !graph.node(maker).tail.empty() || graph.SingleUse(x) != id) return false;
  Node mover = graph.node(maker);
  const ValueId from = mover.inputs[0];
  if (graph.value(from).variable) return false;
  const auto shape_of = [&](ValueId v) -> const Shape& { return graph.value(v).info.shape; };
  const Shape table = OverAll(shape_of(rotary.inputs[1]), shape_of(x));
  std::optional<Shape> moved;
  if (mover.op->reshapes) {
    moved = BeforeReshape(table, shape_of(x), shape_of(from));
  } else if (mover.op->name == "TRANSPOSE") {
    if (const auto order = IntConstant(graph, mover.inputs[1])) {
      moved = BeforeTranspose(table, *order);
    }
  }
  if (!moved || OverAll(shape_of(rotary.inputs[2]), shape_of(x)) != table) return false;
  kernels::OpDescription op = graph.Describe(id);
  op.inputs[0].shape = op.outputs[0].shape = shape_of(from);
  op.inputs[1].shape = op.inputs[2].shape = *moved;
  if (!context.AcceptsInsteadOf(graph.Describe(id), op)) return false;
  const std::vector<int> hosts = MergeHostNodes(graph, {maker, id});
  for (const int i : {1, 2}) {
    if (shape_of(rotary.inputs[i]) == *moved) continue;
    Node reshape = ReshapeTo(graph, rotary.inputs[i], *moved);
    reshape.outputs = {AddShaped(graph, rotary.inputs[i], *moved)};
    reshape.host_nodes = rotary.host_nodes;
    rotary.inputs[i] = reshape.outputs[0];
    graph.InsertBefore(id, std::move(reshape));
  }
  rotary.inputs[0] = from;
  rotary.outputs = {AddShaped(graph, out, shape_of(from))};
  mover.inputs[0] = rotary.outputs[0];
  mover.outputs = {out};
  graph.InsertBefore(id, std::move(rotary));
  graph.Replace(id, std::move(mover));
  graph.Remove(maker);
  context.Record("turn before moving", hosts);
  return true;
}

}  // namespace fuselite::fusion
