// Constants on the outputs or inputs of layers with weights, shared by the rewrites that fold them.
#pragma once

#include <optional>
#include <vector>

#include "fusion/graph.h"

namespace fuselite::fusion {

// A float convolution, depthwise convolution or fully connected layer without a tail, whose weights
// and bias are constant: what constants fold into.
struct Layer {
  std::vector<float> weights, bias;  // bias: zeros where there is none
  Shape weights_shape;
  int64_t outputs = 0;  // output channels
  int64_t inputs = 0;   // input channels

  // The output and the input channel that weight `i` stands between.
  int64_t output_of(int64_t i) const;
  int64_t input_of(int64_t i) const;

  bool depthwise = false;
};
std::optional<Layer> ReadLayer(const Graph& graph, NodeId id);

// Gives the node constants of its own with these weights and bias.
void WriteLayer(Graph& graph, NodeId id, const Layer& layer, bool weights, bool bias);

// A float32 constant that is one number, or one per index of the innermost dimension of `shape`, as
// `channels` numbers; nullopt for others.
std::optional<std::vector<float>> PerChannel(const Graph& graph, ValueId value, int64_t channels);

}  // namespace fuselite::fusion
