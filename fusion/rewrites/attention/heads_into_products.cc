// Attention of bytes, which stays two products with SOFTMAX between them, multiplies the heads of
// rows where they lie side by side: BATCH_MATMULs of [head, row, channel] and the TRANSPOSEs to
// them and back become FUSELITE_HEADS_MATMUL, whose scores are [row, head, key].
#include <algorithm>

#include "fusion/match.h"
#include "fusion/rewrites/attention/heads.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/heads_matmul/heads_matmul.h"

namespace fuselite::fusion {
namespace {

// With fewer rows BATCH_MATMUL reads keys and values unpacked, and TRANSPOSE moves little.
constexpr int32_t kLeastRows = 16;

// A node between the two products, and which of its inputs are the scores.
struct Link {
  NodeId id = kNone;
  int scores = 0;
};

// From the first product to the second.
struct Pattern {
  NodeId first = kNone, second = kNone;
  std::vector<Link> links;  // in their order
  RowsOfHeads queries, keys, values;
};

// Whether an operand of this shape, over [batch, head, row, key], is the same for all heads of the
// only batch.
bool IsSameForHeads(const Shape& shape) {
  return shape.rank() <= 4 && WithOnesInFront(shape, 4).elements(0, 2) == 1;
}

// The only input that has the shape of what the node makes, where that depends on nothing else than
// its place along the last dimension, and on other inputs that are the same for all heads.
std::optional<Link> LinkOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (IsBare(graph, id, "SOFTMAX")) return Link{id, 0};
  const bool pointwise = node.op->pointwise || node.op->elementwise;
  if (!pointwise || node.outputs.size() != 1 || node.tail_inputs > 0) return std::nullopt;
  const Shape& shape = graph.value(node.outputs[0]).info.shape;
  std::optional<Link> link;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    if (node.inputs[i] == kNone) return std::nullopt;
    const Shape& of_input = graph.value(node.inputs[i]).info.shape;
    if (of_input == shape) {
      if (link) return std::nullopt;
      link = Link{id, i};
    } else if (!IsSameForHeads(of_input)) {
      return std::nullopt;
    }
  }
  return link;
}

// The way up from the second product, on which nobody else reads.
std::optional<Pattern> PatternOf(const Graph& graph, NodeId second) {
  Pattern pattern{
      .first = kNone, .second = second, .links = {}, .queries = {}, .keys = {}, .values = {}};
  NodeId reader = second;
  for (ValueId v = graph.node(second).inputs[0];;
       v = graph.node(reader).inputs[pattern.links.back().scores]) {
    const NodeId maker = graph.producer(v);
    if (maker == kNone || graph.SingleUse(v) != reader) return std::nullopt;
    if (IsBare(graph, maker, "BATCH_MATMUL")) {
      pattern.first = maker;
      break;
    }
    const std::optional<Link> link = LinkOf(graph, maker);
    if (!link) return std::nullopt;
    pattern.links.push_back(*link);
    reader = maker;
  }
  std::ranges::reverse(pattern.links);
  return pattern;
}

bool IsOfBytes(const Graph& graph, const Node& product) {
  const auto is_byte = [&](ValueId v) { return graph.value(v).info.type == DataType::kInt8; };
  return std::ranges::all_of(product.inputs, is_byte) && is_byte(product.outputs[0]) &&
         !product.params.as<kernels::BatchMatMulParams>().adj_x;
}

// Fills in where the heads lie; false where they do not, or not for all operands alike.
bool FindHeads(const Graph& graph, Pattern& pattern) {
  const Node &first = graph.node(pattern.first), &second = graph.node(pattern.second);
  if (!IsOfBytes(graph, first) || !IsOfBytes(graph, second)) return false;
  const auto adj_y = [](const Node& node) {
    return node.params.as<kernels::BatchMatMulParams>().adj_y;
  };
  const auto queries = RowsBehind(graph, first.inputs[0], false);
  const auto keys = RowsBehind(graph, first.inputs[1], !adj_y(first));
  const auto values = RowsBehind(graph, second.inputs[1], adj_y(second));
  if (!queries || !keys || !values) return false;
  pattern.queries = *queries;
  pattern.keys = *keys;
  pattern.values = *values;
  if (int64_t{queries->heads} * keys->rows > INT32_MAX) return false;
  const auto fits = [&](const RowsOfHeads& rows) {
    return rows.batches == 1 && rows.heads == queries->heads;
  };
  return queries->heads > 1 && queries->rows >= kLeastRows && fits(*queries) && fits(*keys) &&
         fits(*values) && keys->rows == values->rows && keys->channels == queries->channels;
}

class Rewriter {
 public:
  Rewriter(Graph& graph, const Pattern& pattern, RewriteContext& context)
      : graph_(graph), p_(pattern), context_(context) {}

  bool Run() && {
    const int32_t rows = p_.queries.rows, heads = p_.queries.heads, keys = p_.keys.rows;
    const Shape side_by_side = {1, rows, heads * keys};
    const Shape result = {1, rows, heads * p_.values.channels};
    if (!Accepts(p_.first, p_.queries.shape(false), p_.keys.shape(false), true, side_by_side) ||
        !Accepts(p_.second, side_by_side, p_.values.shape(false), false, result)) {
      return false;
    }
    Record();
    // All before the first product, so that nothing keeps the second from running with it.
    const ValueId of_queries = Under(p_.queries), of_keys = Under(p_.keys);
    const ValueId of_values = Under(p_.values);
    ValueId scores = Multiply(p_.first, of_queries, of_keys, true, side_by_side);
    scores = Reshaped(scores, {1, rows, heads, keys}, p_.first);
    for (const Link& link : p_.links) scores = Append(link, scores);
    scores = Reshaped(scores, side_by_side, p_.second);
    ValueId sums = Multiply(p_.second, scores, of_values, false, result);
    sums = Reshaped(sums, {1, rows, heads, p_.values.channels}, p_.second);
    const Node second = graph_.node(p_.second);
    graph_.Replace(p_.second,
                   HeadsOutside(graph_, p_.second, sums, second.outputs[0], second.host_nodes));
    for (const Link& link : p_.links) graph_.Remove(link.id);
    graph_.Remove(p_.first);
    return true;
  }

 private:
  void Record() {
    std::vector<int> hosts = HostNodesWithMoves(graph_, p_.first);
    const auto add = [&](const std::vector<int>& more) {
      hosts.insert(hosts.end(), more.begin(), more.end());
    };
    add(HostNodesWithMoves(graph_, p_.second));
    for (const Link& link : p_.links) add(graph_.node(link.id).host_nodes);
    context_.Record("multiply heads where they lie", hosts);
  }

  // FUSELITE_HEADS_MATMUL for a product of the pattern.
  Node ProductOf(NodeId product, ValueId x, ValueId y, bool adj_y) const {
    Node node = MakeNode("FUSELITE_HEADS_MATMUL", {x, y});
    node.params = kernels::Params(kernels::HeadsMatMulParams{p_.queries.heads, adj_y});
    node.host_nodes = graph_.node(product).host_nodes;
    return node;
  }

  // Whether a kernel as good as that of `product` computes it on operands of these shapes.
  bool Accepts(NodeId product, const Shape& x, const Shape& y, bool adj_y, const Shape& out) {
    const kernels::OpDescription before = graph_.Describe(product);
    const Node& node = graph_.node(product);
    Node after = ProductOf(product, node.inputs[0], node.inputs[1], adj_y);
    after.outputs = node.outputs;
    kernels::OpDescription op = graph_.Describe(after);
    op.inputs[0].shape = x;
    op.inputs[1].shape = y;
    op.outputs[0].shape = out;
    return context_.AcceptsComposite(op, &before);
  }

  ValueId Under(const RowsOfHeads& rows) {
    return UnderShape(graph_, p_.second, rows, rows.shape(false),
                      graph_.node(p_.second).host_nodes);
  }

  ValueId Reshaped(ValueId from, const Shape& shape, NodeId of) {
    return fusion::Reshaped(graph_, p_.second, from, shape, graph_.node(of).host_nodes);
  }

  ValueId Multiply(NodeId product, ValueId x, ValueId y, bool adj_y, const Shape& shape) {
    Node node = ProductOf(product, x, y, adj_y);
    const ValueId out = AddShaped(graph_, graph_.node(product).outputs[0], shape);
    node.outputs = {out};
    graph_.InsertBefore(p_.second, std::move(node));
    return out;
  }

  // The link's node on scores [1, row, head, key]; returns what it makes.
  ValueId Append(const Link& link, ValueId scores) {
    Node node = graph_.node(link.id);
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      node.inputs[i] = i == link.scores ? scores : OverHeads(node.inputs[i]);
    }
    const ValueId out = AddShaped(graph_, node.outputs[0], graph_.value(scores).info.shape);
    node.outputs = {out};
    graph_.InsertBefore(p_.second, std::move(node));
    return out;
  }

  // An operand that is the same for all heads, over [row, head, key].
  ValueId OverHeads(ValueId v) {
    const Shape shape = WithOnesInFront(graph_.value(v).info.shape, 4);
    if (shape[2] == 1) return v;
    return Reshaped(v, {1, shape[2], 1, shape[3]}, p_.second);
  }

  Graph& graph_;
  const Pattern& p_;
  RewriteContext& context_;
};

}  // namespace

bool HeadsIntoProducts(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "BATCH_MATMUL")) return false;
  std::optional<Pattern> pattern = PatternOf(graph, id);
  return pattern && FindHeads(graph, *pattern) && Rewriter(graph, *pattern, context).Run();
}

}  // namespace fuselite::fusion
