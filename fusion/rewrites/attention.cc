// softmax(scale Q K^T + mask) V, from BATCH_MATMUL, MUL or DIV, ADD, SOFTMAX, BATCH_MATMUL; scale
// and mask may be absent, and a scale behind the mask is that of both. MUL, TANH, MUL before the
// mask cap the scores (Gemma 2). The PyTorch converter's products have all heads in one dimension,
// which RESHAPEs take apart for the mask, and Gemma's have the rows of all heads that share keys;
// of a single head the first one may be a FULLY_CONNECTED by keys that are known only at run time.
// Of several masks (a bias for each distance, what windows must not see, what pads a sentence) the
// sum is one. Keras hides the weights once more, where the mask is: SELECT_V2(seen, weights, 0)
// changes the rows alone that see nothing, which have weights of zero then.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <span>
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

struct Mask {
  ValueId value = kNone;
  float scale = 1;  // by which it is multiplied, and what it is added to
};
using Masks = std::vector<Mask>;

class Matcher : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  // `last` is the product with the values.
  bool Run(NodeId last) {
    const auto& params = ParamsOf<kernels::BatchMatMulParams>(last);
    if (params.adj_x || params.adj_y) return false;
    weights = In(last, 0);
    values = In(last, 1);
    const NodeId softmax = OwnStep(WithoutHiding(SameRows(weights)), "SOFTMAX");
    if (softmax == kNone) return false;
    scale = ParamsOf<kernels::SoftmaxParams>(softmax).beta;
    const ValueId scores = WithoutMasks(SameRows(In(softmax, 0), true));
    return (!hides() || HidesAsMaskDoes()) && TakeProduct(WithoutCap(scores));
  }
  // Whether weights are set to 0.
  bool hides() const { return seen_ != kNone; }

  ValueId queries = kNone, keys = kNone, values = kNone;
  ValueId weights = kNone;  // what the values are multiplied by
  Masks masks;              // what is added to the scores, the last one first
  Shape heads;  // of the scores where that is added: its leading dimensions are the heads'
  float scale = 1;
  float logit_cap = 0;
  bool keys_by_rows = false;

 private:
  ValueId seen_ = kNone;  // decides which weights are set to 0
  int zero_input_ = 0;    // of the SELECT_V2 that does

  // Between the product and the last mask: scales, a cap, other masks, and reshapes around each.
  static constexpr int kMostNodes = 8;

  template <class T>
  const T& ParamsOf(NodeId id) const {
    return graph_.node(id).params.as<T>();
  }
  // The first of what was reshaped to `value`, or where `scaled` also multiplied by numbers, that
  // has its rows, if only `value`. The numbers go into `scale`.
  ValueId SameRows(ValueId value, bool scaled = false) {
    const Shape to = graph_.value(value).info.shape;
    if (to.rank() < 2) return value;
    size_t taken = nodes.size();
    float factor = 1;
    ValueId before = value;
    while ((before = Before(before, scaled, &factor)) != kNone) {
      const Shape& from = graph_.value(before).info.shape;
      if (from.rank() < 2 || from.dim(-1) != to.dim(-1)) continue;
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
      masks.push_back({In(add, 1 - flowing), scale});
      scores = SameRows(In(add, flowing), true);
    }
    return scores;
  }
  // What `value` was before some of it was set to 0, between reshapes.
  ValueId WithoutHiding(ValueId value) {
    const NodeId select = OwnStep(value, "SELECT_V2");
    if (select == kNone) return value;
    for (const int i : {1, 2}) {
      if (ScalarConstant(graph_, In(select, i)) != 0.0f) continue;
      seen_ = In(select, 0);
      zero_input_ = i;
      return SameRows(In(select, 3 - i));
    }
    return value;
  }
  // Whether the weights that are set to 0 are those whose scores the last mask hides.
  bool HidesAsMaskDoes() const {
    return !masks.empty() && masks[0].scale == 1 &&
           (MasksBySeen(masks[0].value) || IsMaskOfSeen(masks[0].value));
  }
  bool MasksBySeen(ValueId mask) const {
    const NodeId select = ProducerIs(graph_, mask, "SELECT_V2");
    if (select == kNone || In(select, 0) != seen_) return false;
    const std::optional<float> low = ScalarConstant(graph_, In(select, zero_input_));
    return low && *low <= kernels::kHiddenScore &&
           ScalarConstant(graph_, In(select, 3 - zero_input_)) == 0.0f;
  }
  // As MasksBySeen(), where both are constants.
  bool IsMaskOfSeen(ValueId mask) const {
    const std::optional<std::vector<float>> numbers = FloatConstant(graph_, mask);
    const TensorInfo& seen = graph_.value(seen_).info;
    if (!numbers || !seen.constant() || seen.shape != graph_.value(mask).info.shape) return false;
    const auto* const chosen = static_cast<const bool*>(seen.data);
    for (size_t i = 0; i < numbers->size(); ++i) {
      const float expected = chosen[i] == (zero_input_ == 1) ? kernels::kHiddenScore : 0;
      if (expected < 0 ? (*numbers)[i] > expected : (*numbers)[i] != 0) return false;
    }
    return true;
  }
  // What `scores` were before cap * TANH(scores / cap).
  ValueId WithoutCap(ValueId scores) {
    const NodeId tanh = OwnStep(scores, "TANH");
    const auto unscaled = [](const Mask& mask) { return mask.scale == 1; };
    if (tanh == kNone || !std::ranges::all_of(masks, unscaled) || scale <= 0) return scores;
    logit_cap = std::exchange(scale, 1.0f);
    const ValueId before = SameRows(In(tanh, 0), true);
    scale *= logit_cap;
    return before;
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
  // Whether a product comes to `value` through scales, a cap, masks and reshapes.
  bool Leads(ValueId value, int depth = 0) const {
    const auto made_by = [&](const char* op) { return OwnProducerIs(graph_, value, op) != kNone; };
    if (made_by("BATCH_MATMUL") || made_by("FULLY_CONNECTED")) return true;
    const bool passes =
        made_by("RESHAPE") || made_by("MUL") || made_by("DIV") || made_by("ADD") || made_by("TANH");
    if (!passes || depth == kMostNodes) return false;
    return std::ranges::any_of(graph_.node(graph_.producer(value)).inputs,
                               [&](ValueId v) { return Leads(v, depth + 1); });
  }
};

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
                                           const Matcher& match) {
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
MaskGroups GroupsOf(const Graph& graph, const Matcher& match) {
  const Masks& masks = match.masks;
  if (masks.empty()) return {};
  const auto is_known = [&](const Mask& mask) { return graph.value(mask.value).info.constant(); };
  const bool together = std::ranges::all_of(masks, is_known) && !match.hides();
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
  ValueId sum = scaled(masks.back());
  for (size_t taken = 2; taken <= masks.size(); ++taken) {
    const ValueId next = scaled(masks[masks.size() - taken]);
    const Shape shape = ShapeOfSum(graph, {masks.end() - static_cast<int64_t>(taken), masks.end()});
    sum = insert(MakeNode("ADD", {sum, next}), shape);
  }
  const Shape shape = graph.value(sum).info.shape, ranked = WithRank(shape, rank);
  return shape == ranked ? sum : insert(ReshapeTo(graph, sum, ranked), ranked);
}

}  // namespace

bool RecognizeAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "BATCH_MATMUL")) return false;
  Matcher match(graph);
  if (!match.Run(id)) return false;
  Node node = MakeNode("FUSELITE_ATTENTION", {match.queries, match.keys, match.values});
  node.params.as<kernels::AttentionParams>() = {.scale = match.scale,
                                                .keys_by_rows = match.keys_by_rows,
                                                .logit_cap = match.logit_cap,
                                                .hidden_is_zero = match.hides()};
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
