// Squeeze-excite: x * gate, gate [1,1,1,C], before a 1x1 convolution. The product with the weights
// gives the same sums and touches far fewer elements than x has; what remains of the convolution is
// a fully connected layer whose weights are made at each run.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::fusion {
namespace {

// Scaling and packing a weight costs about as much as reading and writing a gated element four
// times over: packing moves it again, in a worse order.
constexpr int64_t kPixelsPerFilter = 4;

// Whether the convolution is a product of pixels and weights, of one image. (With padding of its
// own it has more outputs, which the shape rule of what takes its place does not give.)
bool IsPointwise(const kernels::OpDescription& op) {
  const auto& params = op.params.as<kernels::Conv2DParams>();
  const Shape& weights = op.inputs[1].shape;
  return op.inputs[0].shape[0] == 1 && weights[1] == 1 && weights[2] == 1 &&
         weights[3] == op.inputs[0].shape[3] && params.stride_h == 1 && params.stride_w == 1;
}

// The input of `mul` that is a run-time value per channel of the other; -1 where there is none.
int GateOf(const Graph& graph, const Node& mul) {
  for (int i : {0, 1}) {
    const TensorInfo& gate = graph.value(mul.inputs[i]).info;
    const Shape& x = graph.value(mul.inputs[1 - i]).info.shape;
    if (!gate.constant() && x.rank() == 4 && gate.shape.rank() > 0 && gate.shape.dim(-1) == x[3] &&
        gate.elements() == x[3] && gate.elements() < x.elements()) {
      return i;
    }
  }
  return -1;
}

// Weights [O, 1, 1, I] as [O, I]: the same bytes.
ValueId AsMatrix(Graph& graph, ValueId weights) {
  Value matrix = graph.value(weights);
  matrix.info.shape = Shape({matrix.info.shape[0], matrix.info.shape[3]});
  return graph.AddValue(std::move(matrix));
}

ValueId AddFloat(Graph& graph, const Shape& shape, std::string name) {
  Value value;
  value.info = {.type = DataType::kFloat32, .shape = shape};
  value.name = std::move(name);
  return graph.AddValue(std::move(value));
}

}  // namespace

bool GateIntoWeights(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONV_2D") || !IsFloat(graph, graph.node(id).inputs[0])) return false;
  const NodeId mul_id = OwnProducerIs(graph, graph.node(id).inputs[0], "MUL");
  if (mul_id == kNone || FusedActivation(graph.node(mul_id)) != kernels::Activation::kNone) {
    return false;
  }
  const kernels::OpDescription conv = graph.Describe(id);
  const Node mul = graph.node(mul_id);
  const int gate = GateOf(graph, mul);
  if (gate < 0 || !IsPointwise(conv) || !conv.inputs[1].constant() ||
      !IsFloat(graph, graph.node(id).inputs[1])) {
    return false;
  }
  const int32_t filters = conv.inputs[1].shape[0], channels = conv.inputs[1].shape[3];
  if (conv.outputs[0].shape.elements(1, 3) < kPixelsPerFilter * filters) return false;
  const ValueId weights = graph.node(id).inputs[1];
  const ValueId scaled = AddFloat(graph, Shape({filters, channels}), "gated weights");
  Node dense = MakeNode("FULLY_CONNECTED", graph.node(id).inputs);
  dense.params.as<kernels::FullyConnectedParams>().keep_num_dims = true;
  SetFusedActivation(dense, FusedActivation(graph.node(id)));
  dense.inputs[0] = mul.inputs[1 - gate];
  dense.inputs[1] = scaled;
  dense.outputs = graph.node(id).outputs;
  dense.tail = graph.node(id).tail;
  dense.tail_inputs = graph.node(id).tail_inputs;
  dense.host_nodes = MergeHostNodes(graph, {mul_id, id});
  const auto accepts = [&](const auto& op) { return context.AcceptsComposite(op, &conv); };
  if (!ReplaceIf(graph, id, std::move(dense), accepts)) return false;
  const ValueId flat = AddFloat(graph, Shape({channels}), graph.value(mul.inputs[gate]).name);
  const ValueId dims = AddInts(graph, std::span(&channels, 1), "shape");
  Node reshape = MakeNode("RESHAPE", {mul.inputs[gate], dims});
  reshape.outputs = {flat};
  reshape.host_nodes = mul.host_nodes;
  Node scale = MakeNode("MUL", {AsMatrix(graph, weights), flat});
  scale.outputs = {scaled};
  scale.host_nodes = mul.host_nodes;
  graph.InsertBefore(id, std::move(reshape));
  graph.InsertBefore(id, std::move(scale));
  graph.Remove(mul_id);
  context.Record("gate weights instead of pixels", graph.node(id).host_nodes);
  return true;
}

}  // namespace fuselite::fusion
