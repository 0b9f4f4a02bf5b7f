#include "fusion/rewrites/fold_scale.h"

#include "fusion/match.h"

namespace fuselite::fusion {

int64_t Layer::output_of(int64_t i) const {
  return depthwise ? i % outputs : i / (static_cast<int64_t>(weights.size()) / outputs);
}

int64_t Layer::input_of(int64_t i) const {
  if (depthwise) return i % outputs / (outputs / inputs);
  // Grouped convolutions have fewer channels in their filters than the input has.
  const int64_t group_in = weights_shape.dim(-1), groups = inputs / group_in;
  return output_of(i) / (outputs / groups) * group_in + i % group_in;
}

std::optional<Layer> ReadLayer(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string_view op = node.op->name;
  Layer layer;
  layer.depthwise = op == "DEPTHWISE_CONV_2D";
  if (!layer.depthwise && op != "CONV_2D" && op != "FULLY_CONNECTED") return std::nullopt;
  if (!node.tail.empty() || !IsFloat(graph, node.inputs[0])) return std::nullopt;
  const auto weights = FloatConstant(graph, node.inputs[1]);
  if (!weights || weights->empty()) return std::nullopt;
  layer.weights = *weights;
  layer.weights_shape = graph.value(node.inputs[1]).info.shape;
  layer.outputs = layer.weights_shape[layer.depthwise ? 3 : 0];
  layer.inputs = op == "FULLY_CONNECTED" ? layer.weights_shape[1]
                                         : graph.value(node.inputs[0]).info.shape.dim(-1);
  if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
    const auto bias = FloatConstant(graph, node.inputs[2]);
    if (!bias) return std::nullopt;
    layer.bias = *bias;
  } else {
    layer.bias.assign(layer.outputs, 0.0f);
  }
  return layer;
}

void WriteLayer(Graph& graph, NodeId id, const Layer& layer, bool weights, bool bias) {
  const auto add = [&](const std::vector<float>& values, const Shape& shape,
                       std::string_view what) {
    return graph.AddConstant({.type = DataType::kFloat32, .shape = shape},
                             std::as_bytes(std::span(values)), "folded " + std::string(what));
  };
  if (weights) graph.node(id).inputs[1] = add(layer.weights, layer.weights_shape, "weights");
  if (!bias) return;
  const ValueId value = add(layer.bias, Shape({static_cast<int32_t>(layer.outputs)}), "bias");
  graph.node(id).inputs.resize(3, kNone);
  graph.node(id).inputs[2] = value;
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
