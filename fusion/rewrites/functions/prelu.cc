#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/elementwise/elementwise.h"

namespace fuselite::fusion {
namespace {

// Whether `value` is x > 0 or x >= 0; 0 < x and 0 <= x are the same.
NodeId IsPositive(const Graph& graph, ValueId value, ValueId x) {
  for (const auto& [op, i] : {std::pair("GREATER", 0), std::pair("GREATER_EQUAL", 0),
                              std::pair("LESS", 1), std::pair("LESS_EQUAL", 1)}) {
    const NodeId id = OwnProducerIs(graph, value, op);
    if (id == kNone) continue;
    const Node& compare = graph.node(id);
    return compare.inputs[i] == x && ScalarConstant(graph, compare.inputs[1 - i]) == 0.0f ? id
                                                                                          : kNone;
  }
  return kNone;
}

bool ReplaceByPrelu(Graph& graph, NodeId id, const std::vector<NodeId>& others, ValueId x,
                    ValueId alpha, RewriteContext& context) {
  // A slope that is no number spoils positive values, too, in the parts, and not in PRELU.
  const std::optional<std::vector<float>> slopes = FloatConstant(graph, alpha);
  if (slopes && !std::ranges::all_of(*slopes, [](float s) { return std::isfinite(s); })) {
    return false;
  }
  Node node = MakeNode("PRELU", {x, alpha});
  if (const std::optional<float> slope = ScalarConstant(graph, alpha)) {
    node = MakeNode("LEAKY_RELU", {x});
    node.params.as<kernels::LeakyReluParams>().alpha = *slope;
  }
  return ReplacePattern(graph, id, others, std::move(node), "recognize PRELU", context);
}

// Where one input of `product` is RELU(-x) in a single node, which is returned, the other.
std::pair<NodeId, ValueId> NegativePart(const Graph& graph, const Node& product, ValueId x) {
  for (const int i : {0, 1}) {
    const NodeId id = OwnProducerIs(graph, product.inputs[i], "MUL");
    if (id == kNone || FusedActivation(graph.node(id)) != kernels::Activation::kRelu) continue;
    const std::vector<ValueId>& factors = graph.node(id).inputs;
    for (const int k : {0, 1}) {
      if (factors[k] == x && ScalarConstant(graph, factors[1 - k]) == -1.0f) {
        return {id, product.inputs[1 - i]};
      }
    }
  }
  return {kNone, kNone};
}

// RELU(x) - alpha * RELU(-x)
bool FromParts(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& sub = graph.node(id);
  if (!NothingFollows(sub)) return false;
  const NodeId relu = OwnProducerIs(graph, sub.inputs[0], "RELU");
  const NodeId product = OwnProducerIs(graph, sub.inputs[1], "MUL");
  if (relu == kNone || product == kNone) return false;
  if (FusedActivation(graph.node(product)) != kernels::Activation::kNone) return false;
  const ValueId x = graph.node(relu).inputs[0];
  const auto [negative, alpha] = NegativePart(graph, graph.node(product), x);
  if (negative == kNone) return false;
  return ReplaceByPrelu(graph, id, {negative, product, relu}, x, alpha, context);
}

}  // namespace

bool RecognizePrelu(Graph& graph, NodeId id, RewriteContext& context) {
  if (Is(graph, id, "SUB")) return FromParts(graph, id, context);
  if (!Is(graph, id, "SELECT_V2") && !Is(graph, id, "SELECT")) return false;
  const Node select = graph.node(id);
  const ValueId x = select.inputs[1];
  const NodeId product = OwnProducerIs(graph, select.inputs[2], "MUL");
  const NodeId positive = IsPositive(graph, select.inputs[0], x);
  if (product == kNone || positive == kNone) return false;
  const Node& mul = graph.node(product);
  if (FusedActivation(mul) != kernels::Activation::kNone) return false;
  for (int i : {0, 1}) {
    if (mul.inputs[i] != x) continue;
    return ReplaceByPrelu(graph, id, {product, positive}, x, mul.inputs[1 - i], context);
  }
  return false;
}

}  // namespace fuselite::fusion
