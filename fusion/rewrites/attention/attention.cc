// softmax(scale Q K^T + mask) V, from BATCH_MATMUL, MUL or DIV, ADD, SOFTMAX, BATCH_MATMUL; scale
// and mask may be absent, and a scale behind the mask is that of both. MUL, TANH, MUL before the
// mask cap the scores (Gemma 2). The PyTorch converter's products have all heads in one dimension,
// which RESHAPEs take apart for the mask, and Gemma's have the rows of all heads that share keys;
// of a single head the first one may be a FULLY_CONNECTED by keys that are known only at run time.
// Of several masks (a bias for each distance, what windows must not see, what pads a sentence) the
// sum is one. Keras hides the weights once more, where the mask is: SELECT_V2(seen, weights, 0)
// changes the rows alone that see nothing, which have weights of zero then.
#include <algorithm>
#include <span>

#include "fusion/rewrites/attention/attention_pattern.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/elementwise/broadcast.h"

namespace fuselite::fusion {
namespace {

using Mask = AttentionPattern::Mask;
using Masks = std::vector<Mask>;

// The rows of `value` under all but the innermost dimension of `heads`; nullopt where there are
// fewer or more of them.
std::optional<Shape> RowsUnderHeads(const Graph& graph, ValueId value, Shape heads) {
  const TensorInfo& info = graph.value(value).info;
  if (info.shape.rank() < 2) return std::nullopt;
  heads.set(heads.rank() - 1, info.shape.dim(-1));
  if (heads.elements() != info.elements()) return std::nullopt;
  return heads;
}

int64_t MatricesOf(const Graph& graph, ValueId value) {
  const Shape& shape = graph.value(value).info.shape;
  return shape.elements(0, shape.rank() - 2);
}

// The matrices of keys or values, by which `by` is multiplied, under the leading dimensions of
// `heads`, each for one head or for a run of them; nullopt where they are not.
std::optional<Shape> MatricesUnderHeads(const Graph& graph, ValueId value, ValueId by,
                                        const Shape& heads) {
  const TensorInfo& info = graph.value(value).info;
  if (info.shape.rank() < 2 || graph.value(by).info.shape.rank() < 2) return std::nullopt;
  const int64_t matrices = MatricesOf(graph, value);
  if (matrices != 1 && matrices != MatricesOf(graph, by)) return std::nullopt;
  Shape shape = heads;
  const int head = shape.rank() - 3;
  shape.set(shape.rank() - 2, info.shape.dim(-2));
  shape.set(shape.rank() - 1, info.shape.dim(-1));
  if (head >= 0) {
    const int64_t outer = shape.elements(0, head);
    if (outer == 0 || matrices == 0 || heads[head] * outer % matrices != 0) return std::nullopt;
    shape.set(head, static_cast<int32_t>(matrices / outer));
  }
  if (shape.elements() != info.elements()) return std::nullopt;
  return shape;
}

// The queries, keys, values and result as `node`, which is that of `match`, takes and gives them.
std::optional<std::vector<Shape>> ShapesOf(const Graph& graph, const Node& node,
                                           const AttentionPattern& match) {
  const Shape& heads = match.heads;
  const auto queries = RowsUnderHeads(graph, match.queries, heads);
  const auto keys = MatricesUnderHeads(graph, match.keys, match.queries, heads);
  const auto values = MatricesUnderHeads(graph, match.values, match.weights, heads);
  const auto result = RowsUnderHeads(graph, node.outputs[0], heads);
  if (!queries || !keys || !values || !result) return std::nullopt;
  return std::vector{*queries, *keys, *values, *result};
}

// `node` in the place of `id`, between RESHAPEs where its operands have other shapes.
void Place(Graph& graph, NodeId id, Node node, const std::vector<Shape>& shapes) {
  for (int i = 0; i < 3; ++i) {
    const ValueId from = node.inputs[i];
    if (graph.value(from).info.shape == shapes[i]) continue;
    node.inputs[i] = Reshaped(graph, id, from, shapes[i], node.host_nodes);
  }
  const ValueId out = node.outputs[0];
  if (graph.value(out).info.shape == shapes[3]) return graph.Replace(id, std::move(node));
  const ValueId result = AddShaped(graph, out, shapes[3]);
  node.outputs = {result};
  Node behind = ReshapeTo(graph, result, Shape(graph.value(out).info.shape));
  behind.outputs = {out};
  behind.host_nodes = node.host_nodes;
  graph.InsertBefore(id, std::move(node));
  graph.Replace(id, std::move(behind));
}

// The shape of what the masks add together. Each repeats along dimensions of the same scores, and
// so of the others.
Shape ShapeOfSum(const Graph& graph, const Masks& masks) {
  Shape sum;
  for (const Mask& mask : masks) {
    sum = *kernels::BroadcastShapes(sum, graph.value(mask.value).info.shape);
  }
  return sum;
}

// Masks, the last one first, whose sums the kernel adds one after the other.
using MaskGroups = std::vector<Masks>;

// What hides scores comes last in models, and is so large that a sum with it rounds off what comes
// before it: where that is known only at run time, or decides which weights are 0, it is a mask of
// its own, and the others are one.
MaskGroups GroupsOf(const Graph& graph, const AttentionPattern& match) {
  const Masks& masks = match.masks;
  if (masks.empty()) return {};
  const auto is_known = [&](const Mask& mask) { return graph.value(mask.value).info.constant(); };
  const bool together = std::ranges::all_of(masks, is_known) && !match.params.hidden_is_zero;
  if (together || masks.size() == 1) return {masks};
  return {{masks.begin() + 1, masks.end()}, {masks[0]}};
}

// `op`, attention without masks, with the groups' sums over heads of `rank` dimensions.
kernels::OpDescription WithMasks(const Graph& graph, kernels::OpDescription op,
                                 const MaskGroups& groups, int rank) {
  for (const Masks& group : groups) {
    TensorInfo sum = graph.value(group[0].value).info;
    sum.shape = WithRank(ShapeOfSum(graph, group), rank);
    sum.data = nullptr;
    op.inputs.push_back(std::move(sum));
  }
  return op;
}

// What the masks add to scores of `rank`, from the first one on; made before `at`.
ValueId SumOfMasks(Graph& graph, NodeId at, const Masks& masks, int rank,
                   const std::vector<int>& hosts) {
  const auto insert = [&](Node node, const Shape& shape) {
    node.outputs = {AddShaped(graph, masks[0].value, shape)};
    node.host_nodes = hosts;
    const ValueId out = node.outputs[0];
    graph.InsertBefore(at, std::move(node));
    return out;
  };
  const auto scaled = [&](const Mask& mask) {
    if (mask.scale == 1) return mask.value;
    const ValueId number = AddFloats(graph, std::span(&mask.scale, 1), Shape(), "scale");
    const Shape shape = graph.value(mask.value).info.shape;
    return insert(MakeNode("MUL", {mask.value, number}), shape);
  };
  Masks added;
  ValueId sum = kNone;
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) {
    added.push_back(*mask);
    const ValueId next = scaled(*mask);
    sum = sum == kNone ? next : insert(MakeNode("ADD", {sum, next}), ShapeOfSum(graph, added));
  }
  const Shape shape = graph.value(sum).info.shape, ranked = WithRank(shape, rank);
  return shape == ranked ? sum : insert(ReshapeTo(graph, sum, ranked), ranked);
}

}  // namespace

bool RecognizeAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "BATCH_MATMUL")) return false;
  AttentionPattern match(graph);
  if (!match.Match(id)) return false;
  Node node = MakeNode("FUSELITE_ATTENTION", {match.queries, match.keys, match.values});
  node.params.as<kernels::AttentionParams>() = match.params;
  node.outputs = graph.node(id).outputs;
  const std::optional<std::vector<Shape>> shapes = ShapesOf(graph, node, match);
  if (!shapes) return false;
  kernels::OpDescription op = graph.Describe(node);
  for (int i = 0; i < 3; ++i) op.inputs[i].shape = (*shapes)[i];
  op.outputs[0].shape = (*shapes)[3];
  const int rank = match.heads.rank();
  const MaskGroups groups = GroupsOf(graph, match);
  if (!context.AcceptsComposite(WithMasks(graph, op, groups, rank))) return false;
  std::vector<NodeId> replaced = match.nodes;
  replaced.push_back(id);
  node.host_nodes = MergeHostNodes(graph, replaced);
  context.Record("recognize attention", node.host_nodes);
  for (const NodeId other : match.nodes) graph.Remove(other);
  for (const Masks& group : groups) {
    node.inputs.push_back(SumOfMasks(graph, id, group, rank, node.host_nodes));
  }
  Place(graph, id, std::move(node), *shapes);
  return true;
}

}  // namespace fuselite::fusion
