#include <cmath>

#include "fusion/match.h"
#include "fusion/rewrites/layers/fold_scale.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {

// Padding needs no care: zero times a scale is zero.
bool FoldScaleBefore(Graph& graph, NodeId id, RewriteContext& context) {
  const std::optional<Layer> layer = FindLayer(graph, id);
  if (!layer) return false;
  const NodeId mul = OwnProducerIs(graph, graph.node(id).inputs[0], "MUL");
  if (mul == kNone || FusedActivation(graph.node(mul)) != kernels::Activation::kNone) return false;
  const Node scaling = graph.node(mul);
  for (int flowing : {0, 1}) {
    const ValueId x = scaling.inputs[flowing];
    if (graph.value(x).info.shape != graph.value(scaling.outputs[0]).info.shape) continue;
    // A fully connected layer may take rows across the innermost dimension: then no list of its
    // channels fits what is scaled, but a single number does.
    const auto scale = PerChannel(graph, scaling.inputs[1 - flowing], layer->inputs);
    if (!scale) continue;
    std::vector<float> weights = WeightsOf(graph, *layer);
    bool finite = true;
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] *= (*scale)[layer->input_of(static_cast<int64_t>(i))];
      finite = finite && std::isfinite(weights[i]);
    }
    if (!finite) return false;
    Node scaled = graph.node(id);
    SetWeights(graph, scaled, *layer, weights);
    scaled.inputs[0] = x;
    scaled.host_nodes = MergeHostNodes(graph, {mul, id});
    context.Record(internal::Join("fold MUL into the weights of ", scaled.op->name),
                   scaled.host_nodes);
    graph.Replace(id, std::move(scaled));
    graph.Remove(mul);
    return true;
  }
  return false;
}

}  // namespace fuselite::fusion
