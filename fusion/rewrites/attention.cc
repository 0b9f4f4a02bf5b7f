// softmax(scale Q K^T + mask) V, from BATCH_MATMUL, MUL or DIV, ADD, SOFTMAX, BATCH_MATMUL; scale
// and mask may be absent. The PyTorch converter's products have all heads in one dimension, which
// RESHAPEs take apart for the mask.
#include "kernels/attention/attention.h"

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/batch_matmul/batch_matmul.h"
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
    scores = SameRows(WithoutMask(scores));
    if (mask != kNone && beta != 1.0f) return false;
    scores = SameRows(WithoutScale(scores));
    scale *= beta;
    const NodeId product = OwnStep(scores, "BATCH_MATMUL");
    if (product == kNone || ParamsOf<kernels::BatchMatMulParams>(product).adj_x) return false;
    queries = In(product, 0);
    keys = In(product, 1);
    keys_by_rows = ParamsOf<kernels::BatchMatMulParams>(product).adj_y;
    return true;
  }

  ValueId queries = kNone, keys = kNone, values = kNone, mask = kNone;
  Shape heads;  // of the scores where the mask is added: its leading dimensions are the heads'
  float scale = 1;
  bool keys_by_rows = false;

 private:
  template <class T>
  const T& ParamsOf(NodeId id) const {
    return graph_.node(id).params.as<T>();
  }
  // What was reshaped to `value` if that left its matrices as they were, else `value`.
  ValueId SameRows(ValueId value) {
    const NodeId reshape = OwnProducerIs(graph_, value, "RESHAPE");
    if (reshape == kNone) return value;
    const Shape& to = graph_.value(value).info.shape;
    const Shape& from = graph_.value(In(reshape, 0)).info.shape;
    if (to.rank() < 2 || from.rank() < 2 || to.dim(-1) != from.dim(-1) ||
        to.dim(-2) != from.dim(-2)) {
      return value;
    }
    return In(OwnStep(value, "RESHAPE"), 0);
  }
  ValueId WithoutMask(ValueId scores) {
    const NodeId add = OwnStep(scores, "ADD");
    if (add == kNone) return scores;
    // The scores are what the keys' product leads to.
    const int flowing = Leads(In(add, 0)) ? 0 : 1;
    mask = In(add, 1 - flowing);
    return In(add, flowing);
  }
  bool Leads(ValueId value) const {
    const auto made_by = [&](const char* op) { return OwnProducerIs(graph_, value, op) != kNone; };
    if (made_by("RESHAPE")) return Leads(In(graph_.producer(value), 0));
    return made_by("BATCH_MATMUL") || made_by("MUL") || made_by("DIV");
  }
  ValueId WithoutScale(ValueId scores) {
    if (const NodeId mul = OwnStep(scores, "MUL"); mul != kNone) {
      for (int i : {0, 1}) {
        if (const auto factor = ScalarConstant(graph_, In(mul, i))) {
          scale = *factor;
          return In(mul, 1 - i);
        }
      }
    } else if (const NodeId div = OwnStep(scores, "DIV"); div != kNone) {
      if (const auto divisor = ScalarConstant(graph_, In(div, 1))) {
        scale = 1.0f / *divisor;
        return In(div, 0);
      }
    }
    return scores;
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
    Node reshape = ReshapeTo(graph, from, shapes[i]);
    node.inputs[i] = AddShaped(graph, from, shapes[i]);
    reshape.outputs = {node.inputs[i]};
    reshape.host_nodes = node.host_nodes;
    graph.InsertBefore(id, std::move(reshape));
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

}  // namespace

bool RecognizeAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "BATCH_MATMUL") || !graph.node(id).tail.empty()) return false;
  if (!IsFloat(graph, graph.node(id).outputs[0])) return false;
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
  if (!context.AcceptsComposite(op)) return false;
  std::vector<NodeId> replaced = match.nodes;
  replaced.push_back(id);
  node.host_nodes = MergeHostNodes(graph, replaced);
  context.Record("recognize attention", node.host_nodes);
  for (const NodeId other : match.nodes) graph.Remove(other);
  Place(graph, id, std::move(node), *shapes);
  return true;
}

}  // namespace fuselite::fusion
