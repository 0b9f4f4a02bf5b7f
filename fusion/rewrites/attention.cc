// softmax(scale Q K^T + mask) V, from BATCH_MATMUL, MUL or DIV, ADD, SOFTMAX, BATCH_MATMUL; scale
// and mask may be absent, and a scale behind the mask is that of both. The PyTorch converter's
// products have all heads in one dimension, which RESHAPEs take apart for the mask; of a single
// head the first one may be a FULLY_CONNECTED by keys that are known only at run time. Of several
// masks (a bias for each distance, what windows must not see, what pads a sentence) the sum is one.
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
    scale = ParamsOf<kernels::SoftmaxParams>(softmax).beta;
    const ValueId weighted = SameRows(In(softmax, 0), true);
    mask_scale = scale;
    return TakeProduct(SameRows(WithoutMasks(weighted), true));
  }

  ValueId queries = kNone, keys = kNone, values = kNone;
  std::vector<ValueId> masks;  // what is added to the scores, the last one first
  float mask_scale = 1;        // times this
  Shape heads;  // of the scores where that is added: its leading dimensions are the heads'
  float scale = 1;
  bool keys_by_rows = false;

 private:
  // Between the product and the last mask: a scale, other masks, and reshapes around each.
  static constexpr int kMostNodes = 8;

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
  // What `scores` were before masks were added to them.
  ValueId WithoutMasks(ValueId scores) {
    heads = graph_.value(scores).info.shape;
    while (SameHeads(scores)) {
      const NodeId add = OwnStep(scores, "ADD");
      if (add == kNone) break;
      heads = graph_.value(scores).info.shape;
      // The scores are what the keys' product leads to.
      const int flowing = Leads(In(add, 0)) ? 0 : 1;
      masks.push_back(In(add, 1 - flowing));
      scores = SameRows(In(add, flowing));
    }
    return scores;
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

// The shape of what the masks add together. Each repeats along dimensions of the same scores, and
// so of the others.
Shape ShapeOfSum(const Graph& graph, const std::vector<ValueId>& masks) {
  Shape sum;
  for (const ValueId mask : masks) {
    sum = *kernels::BroadcastShapes(sum, graph.value(mask).info.shape);
  }
  return sum;
}

// Masks, the last one first, whose sums the kernel adds one after the other.
using MaskGroups = std::vector<std::vector<ValueId>>;

// In which groups the kernel may add the masks, the best ones first. What hides scores comes last
// in models, and is so large that a sum with it rounds off what comes before it: where that is
// known only at run time it is a mask of its own, and the others are one. But the kernel takes no
// mask that repeats along dimensions between those that it has (over windows, not over heads);
// their sum may have all of them.
std::vector<MaskGroups> GroupingsOf(const Graph& graph, const std::vector<ValueId>& masks) {
  if (masks.empty()) return {MaskGroups{}};
  const bool known =
      std::ranges::all_of(masks, [&](ValueId mask) { return graph.value(mask).info.constant(); });
  if (known || masks.size() == 1) return {MaskGroups{masks}};
  return {MaskGroups{{masks.begin() + 1, masks.end()}, {masks[0]}}, MaskGroups{masks}};
}

// `op`, attention without masks, with the groups' sums over heads of `rank` dimensions.
kernels::OpDescription WithMasks(const Graph& graph, kernels::OpDescription op,
                                 const MaskGroups& groups, int rank) {
  for (const std::vector<ValueId>& group : groups) {
    TensorInfo sum = graph.value(group[0]).info;
    sum.shape = WithRank(ShapeOfSum(graph, group), rank);
    sum.data = nullptr;
    op.inputs.push_back(std::move(sum));
  }
  return op;
}

// What the masks, times `scale`, add to scores of `rank`, from the first one on; made before `at`.
ValueId SumOfMasks(Graph& graph, NodeId at, std::vector<ValueId> masks, float scale, int rank,
                   const std::vector<int>& hosts) {
  const ValueId like = masks.back();
  const auto insert = [&](Node node, const Shape& shape) {
    node.outputs = {AddShaped(graph, like, shape)};
    node.host_nodes = hosts;
    const ValueId out = node.outputs[0];
    graph.InsertBefore(at, std::move(node));
    return out;
  };
  while (masks.size() > 1) {
    const std::vector<ValueId> two = {masks.back(), *(masks.end() - 2)};
    masks.resize(masks.size() - 2);
    masks.push_back(insert(MakeNode("ADD", two), ShapeOfSum(graph, two)));
  }
  ValueId sum = masks[0];
  const Shape shape = graph.value(sum).info.shape, ranked = WithRank(shape, rank);
  if (scale != 1) {
    const ValueId number = AddFloats(graph, std::span(&scale, 1), Shape(), "scale");
    sum = insert(MakeNode("MUL", {sum, number}), shape);
  }
  return shape == ranked ? sum : insert(ReshapeTo(graph, sum, ranked), ranked);
}

}  // namespace

bool RecognizeAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "BATCH_MATMUL")) return false;
  Matcher match(graph);
  if (!match.Run(id)) return false;
  Node node = MakeNode("FUSELITE_ATTENTION", {match.queries, match.keys, match.values});
  node.params.as<kernels::AttentionParams>().scale = match.scale;
  node.params.as<kernels::AttentionParams>().keys_by_rows = match.keys_by_rows;
  node.outputs = graph.node(id).outputs;
  const std::optional<std::vector<Shape>> shapes = ShapesOf(graph, node, match.heads);
  if (!shapes) return false;
  kernels::OpDescription op = graph.Describe(node);
  for (int i = 0; i < 3; ++i) op.inputs[i].shape = (*shapes)[i];
  op.outputs[0].shape = (*shapes)[3];
  const int rank = match.heads.rank();
  const std::vector<MaskGroups> groupings = GroupingsOf(graph, match.masks);
  const auto groups = std::ranges::find_if(groupings, [&](const MaskGroups& each) {
    return context.AcceptsComposite(WithMasks(graph, op, each, rank));
  });
  if (groups == groupings.end()) return false;
  std::vector<NodeId> replaced = match.nodes;
  replaced.push_back(id);
  node.host_nodes = MergeHostNodes(graph, replaced);
  context.Record("recognize attention", node.host_nodes);
  for (const NodeId other : match.nodes) graph.Remove(other);
  for (const std::vector<ValueId>& group : *groups) {
    node.inputs.push_back(SumOfMasks(graph, id, group, match.mask_scale, rank, node.host_nodes));
  }
  Place(graph, id, std::move(node), *shapes);
  return true;
}

}  // namespace fuselite::fusion
