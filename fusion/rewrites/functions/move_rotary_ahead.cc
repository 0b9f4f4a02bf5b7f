// Rotary embedding behind the TRANSPOSEs and reshapes of heads that decoders write in front of it
// comes to stand where layers leave the heads.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// The shape of a table over `table`'s dimensions for what TRANSPOSE made x of; nullopt where it has
// to be transposed itself.
std::optional<Shape> BeforeTranspose(const Shape& table, const std::vector<int32_t>& permutation) {
  const int last = table.rank() - 1;
  if (permutation[last] != last) return std::nullopt;
  int repeats = 0;
  Shape turned = table;
  for (int d = 0; d < last; ++d) {
    turned.set(permutation[d], table[d]);
    repeats += table[d] == 1;
  }
  if (repeats < last - 1) return std::nullopt;
  return turned;
}

// The shape of a table over `table`'s dimensions for `from`, of which a reshape made `x`:
// dimensions in front that both have stay, and the table must repeat along the others.
std::optional<Shape> BeforeReshape(const Shape& table, const Shape& x, const Shape& from) {
  Shape result;
  const int last = x.rank() - 1;
  int d = 0;
  for (int i = 0; i + 1 < from.rank(); ++i) {
    while (d < last && x[d] == 1) ++d;
    const bool same = d < last && x[d] == from[i];
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

bool MoveRotaryAhead(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FUSELITE_ROTARY")) return false;
  Node rotary = graph.node(id);
  const ValueId x = rotary.inputs[0], out = rotary.outputs[0];
  const NodeId maker = graph.producer(x);
  if (maker == kNone || graph.SingleUse(x) != id) return false;
  Node mover = graph.node(maker);
  const ValueId from = mover.inputs[0];
  const auto shape_of = [&](ValueId v) -> const Shape& { return graph.value(v).info.shape; };
  const Shape table = WithOnesInFront(shape_of(rotary.inputs[1]), shape_of(x).rank());
  std::optional<Shape> moved;
  if (mover.op->reshapes) {
    moved = BeforeReshape(table, shape_of(x), shape_of(from));
  } else if (mover.op->name == "TRANSPOSE") {
    moved = BeforeTranspose(table, PermutationOf(graph, mover));
  }
  if (!moved || WithOnesInFront(shape_of(rotary.inputs[2]), shape_of(x).rank()) != table) {
    return false;
  }
  kernels::OpDescription op = graph.Describe(id);
  op.inputs[0].shape = op.outputs[0].shape = shape_of(from);
  op.inputs[1].shape = op.inputs[2].shape = *moved;
  if (!context.AcceptsInsteadOf(graph.Describe(id), op)) return false;
  const std::vector<int> hosts = MergeHostNodes(graph, {maker, id});
  for (const int i : {1, 2}) {
    if (shape_of(rotary.inputs[i]) == *moved) continue;
    rotary.inputs[i] = Reshaped(graph, id, rotary.inputs[i], *moved, rotary.host_nodes);
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
