// Classifiers written as convolutions of the one pixel that pooling leaves.
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::fusion {
namespace {

// Smaller weights, as those of gates by channel, are multiplied as fast by a convolution.
constexpr int64_t kLeastWeights = 1 << 18;

// Filters that stay what they are as a matrix of as many rows.
bool MayBeMatrix(const TensorInfo& filters) {
  return filters.constant() && filters.elements() >= kLeastWeights &&
         (!filters.quantization.per_channel() || filters.quantization.axis == 0);
}

// Whether each image is a pixel, of which the convolution makes another one.
bool IsOfPixels(const Graph& graph, const Node& conv) {
  const Result<kernels::Conv2DShape> shape = kernels::ResolveConv2D(graph.Describe(conv));
  return shape.ok() && shape->window.taps() == 1 && shape->window.unpadded() &&
         shape->groups == 1 && graph.value(conv.inputs[0]).info.shape.elements(1, 3) == 1 &&
         shape->pixels_out() == shape->batch;
}

Shape MatrixOf(const Shape& filters) {
  return {filters[0], static_cast<int32_t>(filters.elements(1, 4))};
}

// The same bytes as a matrix.
ValueId AsMatrix(Graph& graph, ValueId filters) {
  Value matrix = graph.value(filters);
  matrix.info.shape = MatrixOf(matrix.info.shape);
  matrix.host_tensor = kNone;
  return graph.AddValue(std::move(matrix));
}

// Floats that DEQUANTIZE makes of a matrix of the small numbers that it makes `filters` of.
ValueId DequantizedMatrix(Graph& graph, NodeId dequantize, ValueId filters) {
  Node node = graph.node(dequantize);
  node.inputs[0] = AsMatrix(graph, node.inputs[0]);
  node.outputs[0] = AsMatrix(graph, filters);
  const ValueId matrix = node.outputs[0];
  graph.InsertBefore(dequantize, std::move(node));
  return matrix;
}

}  // namespace

bool PixelAsRow(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONV_2D")) return false;
  const Node& convolution = graph.node(id);
  const ValueId filters = convolution.inputs[1];
  const NodeId dequantize = ProducerIs(graph, filters, "DEQUANTIZE");
  const ValueId stored = dequantize == kNone ? filters : graph.node(dequantize).inputs[0];
  if (!IsFloat(graph, convolution.inputs[0]) || !IsFloat(graph, filters) ||
      graph.value(filters).observed || !MayBeMatrix(graph.value(stored).info) ||
      !IsOfPixels(graph, convolution)) {
    return false;
  }
  Node row = convolution;
  const kernels::Activation activation = row.params.as<kernels::Conv2DParams>().activation;
  row.op = &kernels::FullyConnectedOperator();
  row.params = {};
  auto& params = row.params.as<kernels::FullyConnectedParams>();
  params.activation = activation;
  params.keep_num_dims = true;
  row.version = 1;
  kernels::OpDescription op = graph.Describe(row);
  op.inputs[1].shape = MatrixOf(op.inputs[1].shape);
  if (!context.AcceptsComposite(op)) return false;
  row.inputs[1] = dequantize == kNone ? AsMatrix(graph, filters)
                                      : DequantizedMatrix(graph, dequantize, filters);
  context.Record("multiply a pixel as a row", row.host_nodes);
  graph.Replace(id, std::move(row));
  // At once: else floats would be made for nobody.
  if (dequantize != kNone && graph.consumers(filters).empty()) graph.Remove(dequantize);
  return true;
}

}  // namespace fuselite::fusion
