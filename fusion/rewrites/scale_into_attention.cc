// PyTorch's attention multiplies queries and keys by the root of its scale each, before it makes
// heads of them or behind. Attention does the same where it reads them: AttentionParams::by_roots.
#include <cmath>
#include <optional>

#include "fusion/match.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/attention/attention.h"

namespace fuselite::fusion {
namespace {

// A MUL by a number that nothing but an operand of attention comes from, by ways that only move or
// repeat its values.
struct Scaling {
  NodeId mul = kNone;
  ValueId x = kNone;
  float factor = 0;
};

std::optional<Scaling> ScalingOf(const Graph& graph, NodeId mul) {
  if (FusedActivation(graph.node(mul)) != kernels::Activation::kNone) return std::nullopt;
  const Node& node = graph.node(mul);
  for (int i : {0, 1}) {
    const std::optional<float> factor = ScalarConstant(graph, node.inputs[i]);
    const ValueId x = node.inputs[1 - i];
    // A number of more dimensions gives its product more of them, too.
    const auto shape_of = [&](ValueId v) -> const Shape& { return graph.value(v).info.shape; };
    if (factor && shape_of(x) == shape_of(node.outputs[0]) && !graph.value(x).variable) {
      return Scaling{mul, x, *factor};
    }
  }
  return std::nullopt;
}

std::optional<Scaling> ScalingBehind(const Graph& graph, ValueId value) {
  while (graph.SingleUse(value) != kNone) {
    const NodeId id = graph.producer(value);
    if (id == kNone || !graph.node(id).tail.empty()) return std::nullopt;
    if (Is(graph, id, "MUL")) return ScalingOf(graph, id);
    const bool passes =
        graph.node(id).op->reshapes || Is(graph, id, "TRANSPOSE") || Is(graph, id, "BROADCAST_TO");
    if (!passes) return std::nullopt;
    value = graph.node(id).inputs[0];
  }
  return std::nullopt;
}

}  // namespace

bool ScaleIntoAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FUSELITE_ATTENTION")) return false;
  const auto& before = graph.node(id).params.as<kernels::AttentionParams>();
  if (before.scale != 1 || before.by_roots) return false;
  const auto queries = ScalingBehind(graph, graph.node(id).inputs[0]);
  const auto keys = ScalingBehind(graph, graph.node(id).inputs[1]);
  if (!queries || !keys || queries->factor != keys->factor) return false;
  // The root of the square is the factor, or its negative, while the square is a normal float.
  const float scale = queries->factor * keys->factor;
  if (!std::isnormal(scale)) return false;
  const std::vector<int> hosts = MergeHostNodes(graph, {queries->mul, keys->mul, id});
  for (const Scaling& scaling : {*queries, *keys}) {
    graph.ReplaceUses(graph.node(scaling.mul).outputs[0], scaling.x);
    graph.Remove(scaling.mul);
  }
  Node node = graph.node(id);
  node.params.as<kernels::AttentionParams>().scale = scale;
  node.params.as<kernels::AttentionParams>().by_roots = true;
  node.host_nodes = hosts;
  graph.Replace(id, std::move(node));
  context.Record("scale within attention", hosts);
  return true;
}

}  // namespace fuselite::fusion
