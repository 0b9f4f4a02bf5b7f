// Hard-sigmoid and hard-swish as exporters spell them out.
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

using kernels::Activation;

// min(max(x + 3, 0), 6), and the nodes that make it, the last one first.
struct ShiftedRelu6 {
  ValueId x = kNone;
  std::vector<NodeId> nodes;
};

// x of a node "x op constant", the constant on either side where the operator commutes; kNone
// otherwise.
ValueId WithConstant(const Graph& graph, NodeId id, float constant, bool commutes = true) {
  const Node& node = graph.node(id);
  if (IsScalar(graph, node.inputs[1], constant)) return node.inputs[0];
  return commutes && IsScalar(graph, node.inputs[0], constant) ? node.inputs[1] : kNone;
}

bool HasActivation(const Graph& graph, NodeId id, Activation activation) {
  return FusedActivation(graph.node(id)) == activation;
}

// A step of the walk up: the own producer of `value` if it is "operand op constant".
ValueId StepUp(const Graph& graph, ValueId value, std::string_view op, float constant,
               Activation activation, std::vector<NodeId>* nodes) {
  const NodeId id = OwnProducerIs(graph, value, op);
  if (id == kNone || !HasActivation(graph, id, activation)) return kNone;
  const ValueId x = WithConstant(graph, id, constant);
  if (x != kNone) nodes->push_back(id);
  return x;
}

// Up through an activation operator.
ValueId UpThrough(const Graph& graph, ValueId value, std::string_view op,
                  std::vector<NodeId>* nodes) {
  const NodeId id = OwnProducerIs(graph, value, op);
  if (id == kNone) return kNone;
  nodes->push_back(id);
  return graph.node(id).inputs[0];
}

// `low`: what has the lower clamp still to come: RELU or MAXIMUM 0 of x + 3.
ValueId UpThroughRelu(const Graph& graph, ValueId low, std::vector<NodeId>* nodes) {
  if (const ValueId x = StepUp(graph, low, "ADD", 3, Activation::kRelu, nodes); x != kNone) {
    return x;
  }
  ValueId sum = UpThrough(graph, low, "RELU", nodes);
  if (sum == kNone) {
    const NodeId max = OwnProducerIs(graph, low, "MAXIMUM");
    if (max == kNone) return kNone;
    for (int i : {0, 1}) {
      if (ScalarConstant(graph, graph.node(max).inputs[i]) == 0.0f) {
        sum = graph.node(max).inputs[1 - i];
      }
    }
    nodes->push_back(max);
  }
  return StepUp(graph, sum, "ADD", 3, Activation::kNone, nodes);
}

std::optional<ShiftedRelu6> MatchShiftedRelu6(const Graph& graph, ValueId value) {
  ShiftedRelu6 match;
  match.x = StepUp(graph, value, "ADD", 3, Activation::kRelu6, &match.nodes);
  if (match.x != kNone) return match;
  if (const ValueId sum = UpThrough(graph, value, "RELU6", &match.nodes); sum != kNone) {
    match.x = StepUp(graph, sum, "ADD", 3, Activation::kNone, &match.nodes);
  } else if (const NodeId min = OwnProducerIs(graph, value, "MINIMUM"); min != kNone) {
    match.nodes.push_back(min);
    match.x = UpThroughRelu(graph, WithConstant(graph, min, 6), &match.nodes);
  }
  return match.x == kNone ? std::nullopt : std::optional(match);
}

// The value that is divided by six here; kNone where the node does something else.
ValueId DividedBySix(const Graph& graph, NodeId id) {
  if (Is(graph, id, "MUL")) return WithConstant(graph, id, 1.0f / 6);
  if (Is(graph, id, "DIV")) return WithConstant(graph, id, 6, false);
  return kNone;
}

// x * RELU6(x + 3), the product being made by `mul`.
std::optional<ShiftedRelu6> MatchGated(const Graph& graph, NodeId mul) {
  for (int i : {0, 1}) {
    auto gate = MatchShiftedRelu6(graph, graph.node(mul).inputs[i]);
    if (gate && gate->x == graph.node(mul).inputs[1 - i]) return gate;
  }
  return std::nullopt;
}

bool ToHardSwish(Graph& graph, NodeId id, ValueId x, const std::vector<NodeId>& others,
                 RewriteContext& context) {
  return ReplacePattern(graph, id, others, MakeNode("HARD_SWISH", {x}), "recognize hard-swish",
                        context);
}

}  // namespace

bool RecognizeHardSwish(Graph& graph, NodeId id, RewriteContext& context) {
  if (!NothingFollows(graph.node(id))) return false;
  // (x * RELU6(x + 3)) / 6
  if (const ValueId product = DividedBySix(graph, id); product != kNone) {
    const NodeId mul = OwnProducerIs(graph, product, "MUL");
    if (mul == kNone || !NothingFollows(graph.node(mul))) return false;
    auto gate = MatchGated(graph, mul);
    if (!gate) return false;
    gate->nodes.push_back(mul);
    return ToHardSwish(graph, id, gate->x, gate->nodes, context);
  }
  if (!Is(graph, id, "MUL")) return false;
  // x * (RELU6(x + 3) / 6)
  for (int i : {0, 1}) {
    const ValueId gate = graph.node(id).inputs[i], x = graph.node(id).inputs[1 - i];
    const NodeId sixth = graph.SingleConsumer(gate) == id ? graph.producer(gate) : kNone;
    if (sixth == kNone || !NothingFollows(graph.node(sixth))) continue;
    const ValueId relu6 = DividedBySix(graph, sixth);
    if (relu6 == kNone) continue;
    auto match = MatchShiftedRelu6(graph, relu6);
    if (!match || match->x != x) continue;
    match->nodes.push_back(sixth);
    return ToHardSwish(graph, id, x, match->nodes, context);
  }
  return false;
}

bool RecognizeHardSigmoid(Graph& graph, NodeId id, RewriteContext& context) {
  const ValueId relu6 = DividedBySix(graph, id);
  if (relu6 == kNone || !NothingFollows(graph.node(id))) return false;
  const auto match = MatchShiftedRelu6(graph, relu6);
  if (!match) return false;
  return ReplacePattern(
      graph, id, match->nodes,
      MakeChain(graph, match->x,
                {kernels::TailStage::Unary(kernels::UnaryKind::kHardSigmoid, 1.0f / 6, 0.5f)}),
      "recognize hard-sigmoid", context);
}

}  // namespace fuselite::fusion
