// softmax(scale Q K^T + mask) V, from BATCH_MATMUL, MUL or DIV, ADD, SOFTMAX, BATCH_MATMUL; scale
// and mask may be absent. The PyTorch converter's products have all heads in one dimension, which
// RESHAPEs take apart for the mask; of a single head the first one may be a FULLY_CONNECTED by keys
// that are known only at run time. Of two masks (a bias for each distance, and what windows must
// not see) the sum is one.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::fusion {
namespace {

class Matcher : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  // `last` is the product with the values.
  bool Run(NodeId last) {
    const auto& params = ParamsOf<kernels::BatchMatMulParams>(last);
    if (params.adj_x || params.adj_y) return false;
    values = In(last, 1);
    const NodeId softmax = OwnStep(SameRows(In(last, 0)), "SOFTMAX");
    if (softmax == kNone) return false;
    const float beta = ParamsOf<kernels::SoftmaxParams>(softmax).beta;
    ValueId scores = SameRows(In(softmax, 0));
    heads = graph_.value(scores).info.shape;
    scores = WithoutMask(scores, &mask);
    if (mask != kNone) {
      scores = SameRows(scores);
      const Shape own = graph_.value(scores).info.shape;
      if (SameHeads(scores)) scores = WithoutMask(scores, &bias);
      if (bias != kNone) heads = own;
    }
    if (mask != kNone && beta != 1.0f) return false;
    scores = SameRows(scores, true);
    scale *= beta;
    return TakeProduct(scores);
  }

  ValueId queries = kNone, keys = kNone, values = kNone;
  ValueId mask = kNone, bias = kNone;  // what is added to the scores: nothing, one, or both
  Shape heads;  // of the scores where that is added: its leading dimensions are the heads'
  float scale = 1;
  bool keys_by_rows = false;

 private:
  // Between the product and the outer mask: a scale, the other mask, and reshapes around each.
  static constexpr int kMostNodes = 6;

  template <class T>
  const T& ParamsOf(NodeId id) const {
    return graph_.node(id).params.as<T>();
  }
  // The first of what was reshaped to `value`, or where `scaled` also multiplied by numbers, that
  // has its matrices, if only `value`. The numbers go into `scale`.
  ValueId SameRows(ValueId value, bool scaled = false) {
    const Shape to = graph_.value(value).info.shape;
    if (to.rank() < 2) return value;
    size_t taken = nodes.size();
    float factor = 1;
    ValueId before = value;
    while ((before = Before(before, scaled, &factor)) != kNone) {
      const Shape& from = graph_.value(before).info.shape;
      if (from.rank() < 2 || from.dim(-1) != to.dim(-1) || from.dim(-2) != to.dim(-2)) continue;
      scale *= std::exchange(factor, 1.0f);
      value = before;
      taken = nodes.size();
    }
    nodes.resize(taken);
    return value;
  }
  // What RESHAPE, or where `scaled` a product by a number, made `value` of; else kNone.
  ValueId Before(ValueId value, bool scaled, float* factor) {
    if (const NodeId reshape = OwnStep(value, "RESHAPE"); reshape != kNone) return In(reshape, 0);
    if (!scaled) return kNone;
    if (const NodeId mul = OwnStep(value, "MUL"); mul != kNone) {
      const int i = ScalarConstant(graph_, In(mul, 0)) ? 1 : 0;
      const std::optional<float> number = ScalarConstant(graph_, In(mul, 1 - i));
      if (!number) return kNone;
      *factor *= *number;
      return In(mul, i);
    }
    const NodeId div = OwnStep(value, "DIV");
    const std::optional<float> divisor =
        div == kNone ? std::nullopt : ScalarConstant(graph_, In(div, 1));
    if (!divisor) return kNone;
    *factor /= *divisor;
    return In(div, 0);
  }
  // Whether `value` has the dimensions of the heads, but for ones in front.
  bool SameHeads(ValueId value) const {
    const Shape& shape = graph_.value(value).info.shape;
    const int more = heads.rank() - shape.rank();
    return more >= 0 && heads.elements(0, more) == 1 &&
           std::ranges::equal(heads.dims().subspan(more), shape.dims());
  }
  ValueId WithoutMask(ValueId scores, ValueId* added) {
    const NodeId add = OwnStep(scores, "ADD");
    if (add == kNone) return scores;
    // The scores are what the keys' product leads to.
    const int flowing = Leads(In(add, 0)) ? 0 : 1;
    *added = In(add, 1 - flowing);
    return In(add, flowing);
  }
  // The product of queries and keys. For a single head the PyTorch converter writes a layer whose
  // weights are the keys.
  bool TakeProduct(ValueId scores) {
    NodeId product = OwnStep(scores, "BATCH_MATMUL");
    if (product != kNone) {
      if (ParamsOf<kernels::BatchMatMulParams>(product).adj_x) return false;
      keys_by_rows = ParamsOf<kernels::BatchMatMulParams>(product).adj_y;
    } else {
      product = OwnStep(scores, "FULLY_CONNECTED");
      if (product == kNone || graph_.Describe(product).has_input(2)) return false;
      if (graph_.value(In(product, 1)).info.constant()) return false;
      keys_by_rows = true;
    }
    queries = In(product, 0);
    keys = In(product, 1);
    return true;
  }
  // Whether a product comes to `value` through a scale, a mask and reshapes.
  bool Leads(ValueId value, int depth = 0) const {
    const auto made_by = [&](const char* op) { return OwnProducerIs(graph_, value, op) != kNone; };
    if (made_by("BATCH_MATMUL") || made_by("FULLY_CONNECTED")) return true;
    const bool passes = made_by("RESHAPE") || made_by("MUL") || made_by("DIV") || made_by("ADD");
    if (!passes || depth == kMostNodes) return false;
    return std::ranges::any_of(graph_.node(graph_.producer(value)).inputs,
                               [&](ValueId v) { return Leads(v, depth + 1); });
  }
};

// The matrices of `value` under the leading dimensions of `heads`; nullopt where there are fewer or
// more of them.
std::optional<Shape> UnderHeads(const Graph& graph, ValueId value, const Shape& heads) {
  const TensorInfo& info = graph.value(value).info;
  if (info.shape.rank() < 2) return std::nullopt;
  Shape shape = heads;
  shape.set(shape.rank() - 2, info.shape.dim(-2));
  shape.set(shape.rank() - 1, info.shape.dim(-1));
  if (shape.elements() != info.elements()) return std::nullopt;
  return shape;
}

// The queries, keys, values and result as `node` takes and gives them.
std::optional<std::vector<Shape>> ShapesOf(const Graph& graph, const Node& node,
                                           const Shape& heads) {
  std::vector<Shape> shapes;
  for (const ValueId v : {node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[0]}) {
    const std::optional<Shape> shape = UnderHeads(graph, v, heads);
    if (!shape) return std::nullopt;
    shapes.push_back(*shape);
  }
  return shapes;
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

// What both masks, whose sum has the shape `sum`, add to scores of `rank`; made before `at`.
ValueId SumOfMasks(Graph& graph, NodeId at, ValueId a, ValueId b, const Shape& sum, int rank,
                   const std::vector<int>& hosts) {
  const auto insert = [&](Node node, const Shape& shape) {
    node.outputs = {AddShaped(graph, a, shape)};
    node.host_nodes = hosts;
    const ValueId out = node.outputs[0];
    graph.InsertBefore(at, std::move(node));
    return out;
  };
  const ValueId added = insert(MakeNode("ADD", {a, b}), sum);
  const Shape shape = WithRank(sum, rank);
  if (shape == sum) return added;
  return insert(ReshapeTo(graph, added, shape), shape);
}

}  // namespace

bool RecognizeAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "BATCH_MATMUL")) return false;
  Matcher match(graph);
  if (!match.Run(id)) return false;
  std::vector<ValueId> inputs = {match.queries, match.keys, match.values};
  if (match.mask != kNone) inputs.push_back(match.mask);
  Node node = MakeNode("FUSELITE_ATTENTION", std::move(inputs));
  node.params.as<kernels::AttentionParams>().scale = match.scale;
  node.params.as<kernels::AttentionParams>().keys_by_rows = match.keys_by_rows;
  node.outputs = graph.node(id).outputs;
  const std::optional<std::vector<Shape>> shapes = ShapesOf(graph, node, match.heads);
  if (!shapes) return false;
  kernels::OpDescription op = graph.Describe(node);
  for (int i = 0; i < 3; ++i) op.inputs[i].shape = (*shapes)[i];
  op.outputs[0].shape = (*shapes)[3];
  Result<Shape> sum = Shape();
  if (match.bias != kNone) {
    const auto shape_of = [&](ValueId v) -> const Shape& { return graph.value(v).info.shape; };
    // Each repeats along dimensions of the same scores, and so of the other.
    sum = kernels::BroadcastShapes(shape_of(match.mask), shape_of(match.bias));
    op.inputs[3].shape = WithRank(*sum, match.heads.rank());
    op.inputs[3].data = nullptr;
  }
  if (!context.AcceptsComposite(op)) return false;
  std::vector<NodeId> replaced = match.nodes;
  replaced.push_back(id);
  node.host_nodes = MergeHostNodes(graph, replaced);
  context.Record("recognize attention", node.host_nodes);
  for (const NodeId other : match.nodes) graph.Remove(other);
  if (match.bias != kNone) {
    node.inputs[3] =
        SumOfMasks(graph, id, match.bias, match.mask, *sum, match.heads.rank(), node.host_nodes);
  }
  Place(graph, id, std::move(node), *shapes);
  return true;
}

}  // namespace fuselite::fusion
