// A product of matrices whose result is read by columns is the product of its turned operands in
// the other order, which gives rows: (A B)^T = B^T A^T. So is one whose result is a single column,
// which lies as a row does. JAX orders the operands of an einsum as it
// likes: Flax multiplies values by weights instead of weights by values, and TRANSPOSEs make of
// each operand, and of the result, what it needs to be. Turned, these move whole rows or go away,
// and attention is as others write it.
#include <array>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/batch_matmul/batch_matmul.h"

namespace fuselite::fusion {
namespace {

// [..., columns, rows] of [..., rows, columns].
Shape Turned(const Shape& shape) {
  Shape turned = shape;
  turned.set(shape.rank() - 2, shape.dim(-1));
  turned.set(shape.rank() - 1, shape.dim(-2));
  return turned;
}

// What `value`, which nobody else reads, becomes by a number that multiplies it; else itself.
ValueId AfterScaling(const Graph& graph, ValueId value) {
  const NodeId id = graph.SingleUse(value);
  if (!IsBare(graph, id, "MUL") && !IsBare(graph, id, "DIV")) return value;
  const Node& node = graph.node(id);
  const ValueId number = node.inputs[node.inputs[0] == value ? 1 : 0];
  return NothingFollows(node) && ScalarConstant(graph, number) ? node.outputs[0] : value;
}

// Whether TRANSPOSEs, and reshapes, behind the matrices `value` or their product with a number,
// which nobody else reads, end in rows along what are its columns. A single column lies as a row
// does.
bool IsReadByColumns(const Graph& graph, ValueId value) {
  const Shape& shape = graph.value(value).info.shape;
  if (shape.dim(-2) == 1) return false;
  if (shape.dim(-1) == 1) return true;
  const std::optional<Origin> origin =
      OriginOf(graph, AfterRearranging(graph, AfterScaling(graph, value)));
  if (!origin || origin->order.unchanged()) return false;
  // Heads outside of the rows may go on where these end.
  const ElementOrder::Piece& innermost = origin->order.pieces().back();
  return innermost.stride == shape.dim(-1) && innermost.size % shape.dim(-2) == 0;
}

// Whether TRANSPOSEs made the matrices `value` of some whose rows lie along its columns.
bool IsMadeByColumns(const Graph& graph, ValueId value) {
  const std::optional<Origin> origin = OriginOf(graph, value);
  if (!origin) return false;
  const Shape& shape = graph.value(value).info.shape;
  const auto outer = static_cast<int32_t>(shape.elements(0, shape.rank() - 2));
  const auto split = origin->order.Split({outer, shape.dim(-2), shape.dim(-1)});
  return split && !(*split)[1].empty() && (*split)[1].back().stride == 1;
}

// How the turned product reads an operand: in its place, adjoint, or through another TRANSPOSE,
// which goes into the one that made it.
enum class Reading { kInPlace, kAdjoint, kTransposed };

Reading ReadingOf(const Graph& graph, ValueId value, bool adjoint) {
  if (adjoint) return Reading::kInPlace;
  const Shape& shape = graph.value(value).info.shape;
  const bool is_vector = shape.dim(-1) == 1 || shape.dim(-2) == 1;
  return is_vector || IsMadeByColumns(graph, value) ? Reading::kTransposed : Reading::kAdjoint;
}

Node TransposeOf(Graph& graph, ValueId from, ValueId to, const std::vector<int>& hosts) {
  const int rank = graph.value(from).info.shape.rank();
  std::vector<int32_t> permutation;
  for (int d = 0; d < rank; ++d) permutation.push_back(d);
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  Node node = MakeNode("TRANSPOSE", {from, AddInts(graph, permutation, "permutation")});
  node.outputs = {to};
  node.host_nodes = hosts;
  return node;
}

}  // namespace

bool TurnProduct(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "BATCH_MATMUL")) return false;
  Node node = graph.node(id);
  auto& params = node.params.as<kernels::BatchMatMulParams>();
  const ValueId a = node.inputs[0], b = node.inputs[1], out = node.outputs[0];
  const auto info_of = [&](ValueId v) -> const TensorInfo& { return graph.value(v).info; };
  // Constant matrices are packed ahead where they stand, and types have their places.
  if (info_of(b).constant() || info_of(a).type != info_of(b).type) return false;
  if (!IsReadByColumns(graph, out)) return false;
  const std::array readings = {ReadingOf(graph, b, params.adj_y),
                               ReadingOf(graph, a, params.adj_x)};
  // Rows that do not lie one after the other would be copied, where no TRANSPOSE was before.
  if (readings[0] == Reading::kAdjoint) return false;

  params.adj_x = false;
  params.adj_y = readings[1] == Reading::kAdjoint;
  node.inputs = {b, a};
  kernels::OpDescription op = graph.Describe(node);
  for (int i : {0, 1}) {
    if (readings[i] == Reading::kTransposed) op.inputs[i].shape = Turned(op.inputs[i].shape);
  }
  op.outputs[0].shape = Turned(op.outputs[0].shape);
  // A single row reads the other operand where it lies, by another kernel than many rows.
  const bool accepted = op.outputs[0].shape.dim(-2) == 1
                            ? context.AcceptsComposite(op)
                            : context.AcceptsInsteadOf(graph.Describe(id), op);
  if (!accepted) return false;

  const std::vector<int> hosts = node.host_nodes;
  context.Record("turn BATCH_MATMUL", HostNodesWithChains(graph, id));
  for (int i : {0, 1}) {
    if (readings[i] != Reading::kTransposed) continue;
    const ValueId from = node.inputs[i];
    node.inputs[i] = AddShaped(graph, from, op.inputs[i].shape);
    graph.InsertBefore(id, TransposeOf(graph, from, node.inputs[i], hosts));
  }
  const ValueId rows = AddShaped(graph, out, op.outputs[0].shape);
  node.outputs = {rows};
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, TransposeOf(graph, rows, out, hosts));
  return true;
}

}  // namespace fuselite::fusion
