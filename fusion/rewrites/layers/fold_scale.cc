#include "fusion/rewrites/layers/fold_scale.h"

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"

namespace fuselite::fusion {

namespace {

bool IsFloatConstant(const Graph& graph, ValueId value) {
  return IsFloat(graph, value) && graph.value(value).info.constant();
}

}  // namespace

int64_t Layer::output_of(int64_t i) const {
  return depthwise ? i % outputs : i / weights_per_output;
}

int64_t Layer::input_of(int64_t i) const {
  if (depthwise) return i % outputs / (outputs / inputs);
  // Grouped convolutions have fewer channels in their filters than the input has.
  const int64_t group_in = weights_shape.dim(-1), groups = inputs / group_in;
  return output_of(i) / (outputs / groups) * group_in + i % group_in;
}

std::optional<Layer> FindLayer(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string_view op = node.op->name;
  Layer layer;
  layer.depthwise = op == "DEPTHWISE_CONV_2D";
  if (!layer.depthwise && op != "CONV_2D" && op != "FULLY_CONNECTED") return std::nullopt;
  if (!node.tail.empty() || !IsFloat(graph, node.inputs[0])) return std::nullopt;
  layer.weights = node.inputs[1];
  layer.bias = node.inputs.size() > 2 ? node.inputs[2] : kNone;
  if (!IsFloatConstant(graph, layer.weights) ||
      (layer.bias != kNone && !IsFloatConstant(graph, layer.bias))) {
    return std::nullopt;
  }
  layer.weights_shape = graph.value(layer.weights).info.shape;
  layer.outputs = layer.weights_shape[layer.depthwise ? 3 : 0];
  layer.weights_per_output = layer.weights_shape.elements() / layer.outputs;
  layer.inputs = op == "FULLY_CONNECTED" ? layer.weights_shape[1]
                                         : graph.value(node.inputs[0]).info.shape.dim(-1);
  return layer;
}

std::vector<float> WeightsOf(const Graph& graph, const Layer& layer) {
  return *FloatConstant(graph, layer.weights);
}

std::vector<float> BiasOf(const Graph& graph, const Layer& layer) {
  return layer.bias != kNone ? *FloatConstant(graph, layer.bias)
                             : std::vector<float>(layer.outputs, 0.0f);
}

void SetWeights(Graph& graph, Node& node, const Layer& layer, const std::vector<float>& weights) {
  node.inputs[1] = AddFloats(graph, weights, layer.weights_shape, "folded weights");
}

void SetBias(Graph& graph, Node& node, const std::vector<float>& bias) {
  const ValueId value =
      AddFloats(graph, bias, Shape({static_cast<int32_t>(bias.size())}), "folded bias");
  node.inputs.resize(3, kNone);
  node.inputs[2] = value;
}

std::optional<std::vector<float>> PerChannel(const Graph& graph, ValueId value, int64_t channels) {
  auto values = FloatConstant(graph, value);
  if (!values) return std::nullopt;
  if (values->size() == 1) return std::vector<float>(channels, (*values)[0]);
  const Shape& shape = graph.value(value).info.shape;
  if (static_cast<int64_t>(values->size()) != channels || shape.dim(-1) != channels) {
    return std::nullopt;
  }
  return values;
}

}  // namespace fuselite::fusion
