// PyTorch's attention multiplies queries and keys by the root of its scale each, before it makes
// heads of them or behind. Attention does the same where it reads them: AttentionParams::by_roots.
// Other numbers that queries or keys are multiplied by become part of the scale of the scores.
#include <cmath>
#include <optional>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
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
    if (factor && shape_of(x) == shape_of(node.outputs[0])) return Scaling{mul, x, *factor};
  }
  return std::nullopt;
}

std::optional<Scaling> ScalingBehind(const Graph& graph, ValueId value) {
  while (graph.SingleUse(value) != kNone) {
    const NodeId id = graph.producer(value);
    if (id == kNone || !graph.node(id).tail.empty()) return std::nullopt;
    if (Is(graph, id, "MUL")) return ScalingOf(graph, id);
    if (!Rearranges(graph, id) && !Is(graph, id, "BROADCAST_TO")) return std::nullopt;
    value = graph.node(id).inputs[0];
  }
  return std::nullopt;
}

}  // namespace

bool ScaleIntoAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FUSELITE_ATTENTION")) return false;
  const auto& before = graph.node(id).params.as<kernels::AttentionParams>();
  if (before.by_roots) return false;
  std::vector<Scaling> scalings;
  float scale = before.scale;
  for (const int i : {0, 1}) {
    const std::optional<Scaling> scaling = ScalingBehind(graph, graph.node(id).inputs[i]);
    if (!scaling) continue;
    scalings.push_back(*scaling);
    scale *= scaling->factor;
  }
  // The root of the square is the factor, or its negative, while the square is a normal float.
  if (scalings.empty() || !std::isnormal(scale)) return false;
  const bool by_roots =
      before.scale == 1 && scalings.size() == 2 && scalings[0].factor == scalings[1].factor;
  std::vector<NodeId> nodes = {id};
  for (const Scaling& scaling : scalings) nodes.push_back(scaling.mul);
  const std::vector<int> hosts = MergeHostNodes(graph, nodes);
  for (const Scaling& scaling : scalings) {
    graph.ReplaceUses(graph.node(scaling.mul).outputs[0], scaling.x);
    graph.Remove(scaling.mul);
  }
  Node node = graph.node(id);
  node.params.as<kernels::AttentionParams>().scale = scale;
  node.params.as<kernels::AttentionParams>().by_roots = by_roots;
  node.host_nodes = hosts;
  graph.Replace(id, std::move(node));
  context.Record("scale within attention", hosts);
  return true;
}

}  // namespace fuselite::fusion
