// How exporters hide scores before SOFTMAX, as one sum with a mask, which a product's tail adds,
// and attention:
//
//   SELECT_V2(condition, scores, low)   JAX, deBERTa      scores + SELECT_V2(condition, 0, low)
//   SELECT_V2(condition, scores, low) * scale   GPT-J     scores * scale, then as above
//   scores - mask                       DistilBERT        scores + NEG(mask)
//   scores * seen - hidden              GPT-2; constants  scores + (seen ? -hidden : kHiddenScore)
//
// A masked score still is so low that its exponential is 0; a row of which all is masked has equal
// weights while its scores are below the last place of `low`, 64 for -1e9.
#include <span>
#include <utility>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/attention/attention.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::fusion {
namespace {

// What hides a score in the networks that say so by a product: 1e4 of GPT-2's, which was trained in
// float16. Scores of thousands would be seen behind it, but not by any such network.
constexpr float kLow = -1e4f;

// Whether a SOFTMAX, in which low scores weigh little, alone reads `value`.
bool IsReadBySoftmax(const Graph& graph, ValueId value) {
  const NodeId reader = graph.SingleUse(value);
  return IsBare(graph, reader, "SOFTMAX") &&
         graph.node(reader).params.as<kernels::SoftmaxParams>().beta > 0;
}
// Or what `value` is rearranged to.
bool GoesToSoftmax(const Graph& graph, ValueId value) {
  return IsReadBySoftmax(graph, AfterRearranging(graph, value));
}

// The input of a SELECT_V2 that is a constant low enough, also times `scale`; 0: none.
int LowInput(const Graph& graph, const Node& select, float scale = 1) {
  for (const int i : {1, 2}) {
    const std::optional<float> value = ScalarConstant(graph, select.inputs[i]);
    if (value && *value <= kernels::kHiddenScore && *value * scale <= kLow) return i;
  }
  return 0;
}

// Whether `scores` are floats of this run, of the shape of `out`.
bool AreScores(const Graph& graph, ValueId scores, ValueId out) {
  const TensorInfo& info = graph.value(scores).info;
  return !info.constant() && IsFloat(graph, scores) && info.shape == graph.value(out).info.shape;
}

// ADD of scores and mask in the place of `id`; `mask`, a node, makes the mask before it. Both stand
// for `hosts`.
bool AddMask(Graph& graph, NodeId id, ValueId scores, Node mask, const std::vector<int>& hosts,
             RewriteContext& context) {
  Node add = MakeNode("ADD", {scores, mask.outputs[0]});
  add.outputs = graph.node(id).outputs;
  add.host_nodes = hosts;
  if (!context.AcceptsComposite(graph.Describe(add))) return false;
  context.Record("mask by addition", hosts);
  mask.host_nodes = hosts;
  graph.InsertBefore(id, std::move(mask));
  graph.Replace(id, std::move(add));
  return true;
}

// The input of a node of two inputs that is no constant, where the other one is; 0 where neither
// is.
int Flowing(const Graph& graph, const Node& node) {
  return graph.value(node.inputs[0]).info.constant() ? 1 : 0;
}

// `last` gives the choice, or its product with a number, which then is that of the scores alone.
bool OfChoice(Graph& graph, NodeId choice, NodeId last, RewriteContext& context) {
  Node select = graph.node(choice), scale = graph.node(last);
  const bool scaled = choice != last;
  const int flowing = Flowing(graph, scale);
  const ValueId out = scale.outputs[0];
  const std::optional<float> number =
      scaled ? ScalarConstant(graph, scale.inputs[1 - flowing]) : 1.0f;
  if (!number || *number <= 0 || !GoesToSoftmax(graph, out)) return false;
  const int low = LowInput(graph, select, *number);
  if (low == 0 || !AreScores(graph, select.inputs[3 - low], out)) return false;
  ValueId scores = select.inputs[3 - low];
  if (scaled) {
    scale.inputs[flowing] = std::exchange(scores, select.outputs[0]);
    scale.outputs = select.outputs;
  }
  const Shape condition = graph.value(select.inputs[0]).info.shape;
  const float zero = 0;
  select.inputs[3 - low] = AddFloats(graph, std::span(&zero, 1), Shape(), "zero");
  select.outputs = {AddShaped(graph, out, condition)};
  const std::vector<int> hosts = MergeHostNodes(graph, {choice, last});
  if (!AddMask(graph, last, scores, std::move(select), hosts, context)) return false;
  if (scaled) graph.Replace(choice, std::move(scale));
  return true;
}

// scores - mask, where the mask has fewer elements.
bool OfDifference(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& difference = graph.node(id);
  const ValueId scores = difference.inputs[0], mask = difference.inputs[1];
  if (!GoesToSoftmax(graph, difference.outputs[0])) return false;
  if (!AreScores(graph, scores, difference.outputs[0]) || !IsFloat(graph, mask)) return false;
  const Shape shape = graph.value(mask).info.shape;
  if (shape.elements() >= graph.value(scores).info.shape.elements()) return false;
  Node negative = MakeNode("NEG", {mask});
  negative.outputs = {AddShaped(graph, scores, shape)};
  const std::vector<int> hosts = difference.host_nodes;
  return AddMask(graph, id, scores, std::move(negative), hosts, context);
}

// What scores * seen + hidden adds where a score is seen, and kHiddenScore elsewhere; nullopt where
// the two are no constants of one shape, `seen` is other than zeros and ones, a score that it hides
// could be seen, or a row sees nothing.
std::optional<std::vector<float>> MaskOf(const Graph& graph, ValueId seen, ValueId hidden,
                                         bool subtracted) {
  const std::optional<std::vector<float>> ones = FloatConstant(graph, seen);
  std::optional<std::vector<float>> mask = FloatConstant(graph, hidden);
  const Shape& shape = graph.value(seen).info.shape;
  if (!ones || !mask || shape != graph.value(hidden).info.shape || shape.rank() == 0) {
    return std::nullopt;
  }
  bool sees = false;
  for (size_t i = 0; i < ones->size(); ++i) {
    float& number = (*mask)[i];
    if (subtracted) number = -number;
    if ((*ones)[i] == 1) {
      sees = true;
    } else if ((*ones)[i] == 0 && number <= kLow) {
      number = kernels::kHiddenScore;
    } else {
      return std::nullopt;
    }
    if ((static_cast<int64_t>(i) + 1) % shape.dim(-1) == 0 && !std::exchange(sees, false)) {
      return std::nullopt;
    }
  }
  return mask;
}

// scores * seen + hidden, or minus it: constants of one shape.
bool OfProduct(Graph& graph, NodeId id, RewriteContext& context) {
  const Node sum = graph.node(id);
  const ValueId out = sum.outputs[0];
  const bool subtracts = sum.op->name == std::string_view("SUB");
  const int flowing = subtracts ? 0 : Flowing(graph, sum);
  const NodeId product = OwnProducerIs(graph, sum.inputs[flowing], "MUL");
  if (product == kNone || !NothingFollows(graph.node(product))) return false;
  if (!IsReadBySoftmax(graph, out)) return false;
  const Node& weighed = graph.node(product);
  const ValueId scores = weighed.inputs[Flowing(graph, weighed)];
  const ValueId seen = weighed.inputs[1 - Flowing(graph, weighed)];
  const std::optional<std::vector<float>> mask =
      MaskOf(graph, seen, sum.inputs[1 - flowing], subtracts);
  if (!mask || !AreScores(graph, scores, out)) return false;
  const Shape shape = graph.value(seen).info.shape;
  if (shape.dim(-1) != graph.value(out).info.shape.dim(-1)) return false;
  const std::vector<int> hosts = MergeHostNodes(graph, {product, id});
  Node add = MakeNode("ADD", {scores, AddFloats(graph, *mask, shape, "mask")});
  add.outputs = {out};
  add.host_nodes = hosts;
  context.Record("mask by addition", hosts);
  graph.Remove(product);
  graph.Replace(id, std::move(add));
  return true;
}

}  // namespace

bool MaskByAddition(Graph& graph, NodeId id, RewriteContext& context) {
  if (IsBare(graph, id, "SELECT_V2")) return OfChoice(graph, id, id, context);
  const bool subtracts = IsBare(graph, id, "SUB"), multiplies = IsBare(graph, id, "MUL");
  if (!subtracts && !multiplies && !IsBare(graph, id, "ADD")) return false;
  if (!NothingFollows(graph.node(id))) return false;
  if (multiplies) {
    const Node& node = graph.node(id);
    const NodeId choice = OwnProducerIs(graph, node.inputs[Flowing(graph, node)], "SELECT_V2");
    return choice != kNone && OfChoice(graph, choice, id, context);
  }
  return OfProduct(graph, id, context) || (subtracts && OfDifference(graph, id, context));
}

}  // namespace fuselite::fusion
