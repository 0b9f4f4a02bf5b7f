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

}  // namespace

bool RecognizePrelu(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "SELECT_V2") && !Is(graph, id, "SELECT")) return false;
  const Node select = graph.node(id);
  const ValueId x = select.inputs[1];
  const NodeId product = OwnProducerIs(graph, select.inputs[2], "MUL");
  const NodeId positive = IsPositive(graph, select.inputs[0], x);
  if (product == kNone || positive == kNone || !IsFloat(graph, x)) return false;
  const Node& mul = graph.node(product);
  if (FusedActivation(mul) != kernels::Activation::kNone) return false;
  for (int i : {0, 1}) {
    if (mul.inputs[i] != x) continue;
    const ValueId alpha = mul.inputs[1 - i];
    Node node = MakeNode("PRELU", {x, alpha});
    if (const std::optional<float> slope = ScalarConstant(graph, alpha)) {
      node = MakeNode("LEAKY_RELU", {x});
      node.params.as<kernels::LeakyReluParams>().alpha = *slope;
    }
    return ReplacePattern(graph, id, {product, positive}, std::move(node), "recognize PRELU",
                          context);
  }
  return false;
}

}  // namespace fuselite::fusion
