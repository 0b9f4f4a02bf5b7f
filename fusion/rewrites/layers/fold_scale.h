// Constants on the outputs or inputs of layers with weights, shared by the rewrites that fold them.
#pragma once

#include <optional>
#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// A float convolution, depthwise convolution or fully connected layer without a tail, whose weights
// and bias are constant: what constants fold into.
struct Layer {
  ValueId weights = kNone, bias = kNone;  // bias: kNone where there is none
  Shape weights_shape;
  int64_t outputs = 0;  // output channels
  int64_t inputs = 0;   // input channels
  int64_t weights_per_output = 0;
  bool depthwise = false;

  // The output and the input channel that weight `i` stands between.
  int64_t output_of(int64_t i) const;
  int64_t input_of(int64_t i) const;
};
// Looks at shapes alone, as most layers have nothing to fold. nullopt where the node is none.
std::optional<Layer> FindLayer(const Graph& graph, NodeId id);

// Copies of the constants; of the bias zeros, where there is none.
std::vector<float> WeightsOf(const Graph& graph, const Layer& layer);
std::vector<float> BiasOf(const Graph& graph, const Layer& layer);

// Gives the node, which is not in the graph yet, constants of its own.
void SetWeights(Graph& graph, Node& node, const Layer& layer, const std::vector<float>& weights);
void SetBias(Graph& graph, Node& node, const std::vector<float>& bias);

// A float32 constant that is one number, or one per index of the innermost dimension of `shape`, as
// `channels` numbers; nullopt for others.
std::optional<std::vector<float>> PerChannel(const Graph& graph, ValueId value, int64_t channels);

}  // namespace fuselite::fusion
