#include <algorithm>
#include <cmath>

#include "fusion/match.h"
#include "fusion/rewrites/layers/fold_scale.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// y -> scale * y + offset, per channel; an empty vector stands for ones or zeros.
struct Affine {
  std::vector<float> scale, offset;
};

// What the node does to its input that is not constant, whose channels are `channels`.
std::optional<Affine> AsAffine(const Graph& graph, const Node& node, int flowing,
                               int64_t channels) {
  auto constant = PerChannel(graph, node.inputs[1 - flowing], channels);
  if (!constant) return std::nullopt;
  const std::string_view op = node.op->name;
  const auto negate = [](std::vector<float> v) {
    for (float& x : v) x = -x;
    return v;
  };
  if (op == "ADD") return Affine{{}, *constant};
  if (op == "MUL") return Affine{*constant, {}};
  if (op == "SUB" && flowing == 0) return Affine{{}, negate(*constant)};
  if (op == "SUB") return Affine{std::vector<float>(channels, -1.0f), *constant};
  if (op == "DIV" && flowing == 0) {
    for (float& x : *constant) x = 1.0f / x;
    return Affine{*constant, {}};
  }
  return std::nullopt;
}

bool Finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

// What a layer becomes when a function of its output is folded into it.
struct Folded {
  std::optional<std::vector<float>> weights;  // nullopt: as they were
  std::vector<float> bias;
};

// Rounds each product once, so that the layer's terms move by half a unit in the last place; the
// bias is no worse than the sum that it replaces. nullopt where a product overflows.
std::optional<Folded> Apply(const Graph& graph, const Affine& affine, const Layer& layer) {
  Folded folded;
  folded.bias = BiasOf(graph, layer);
  if (!affine.scale.empty()) {
    std::vector<float>& weights = folded.weights.emplace(WeightsOf(graph, layer));
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] *= affine.scale[layer.output_of(static_cast<int64_t>(i))];
    }
    if (!Finite(weights)) return std::nullopt;
    for (size_t c = 0; c < folded.bias.size(); ++c) folded.bias[c] *= affine.scale[c];
  }
  if (!affine.offset.empty()) {
    for (size_t c = 0; c < folded.bias.size(); ++c) folded.bias[c] += affine.offset[c];
  }
  if (!Finite(folded.bias)) return std::nullopt;
  return folded;
}

}  // namespace

bool FoldScaleAfter(Graph& graph, NodeId id, RewriteContext& context) {
  const Node& node = graph.node(id);
  if (node.inputs.size() != 2 || node.outputs.size() != 1 || !node.tail.empty()) return false;
  for (int flowing : {0, 1}) {
    const ValueId between = node.inputs[flowing];
    if (between == kNone || graph.SingleConsumer(between) != id) continue;
    const NodeId host = graph.producer(between);
    if (host == kNone ||
        graph.value(between).info.shape != graph.value(node.outputs[0]).info.shape ||
        FusedActivation(graph.node(host)) != kernels::Activation::kNone) {
      continue;
    }
    const std::optional<Layer> layer = FindLayer(graph, host);
    if (!layer) continue;
    const std::optional<Affine> affine = AsAffine(graph, node, flowing, layer->outputs);
    if (!affine) continue;
    const std::optional<Folded> folded = Apply(graph, *affine, *layer);
    if (!folded) continue;
    Node fused = graph.node(host);
    if (folded->weights) SetWeights(graph, fused, *layer, *folded->weights);
    SetBias(graph, fused, folded->bias);
    SetFusedActivation(fused, FusedActivation(node));
    fused.host_nodes = MergeHostNodes(graph, {host, id});
    fused.outputs = node.outputs;
    context.Record(internal::Join("fold ", node.op->name, " into the weights of ", fused.op->name),
                   fused.host_nodes);
    graph.Remove(id);
    graph.Replace(host, std::move(fused));
    return true;
  }
  return false;
}

}  // namespace fuselite::fusion
