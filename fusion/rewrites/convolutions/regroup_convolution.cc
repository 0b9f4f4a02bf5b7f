#include "fusion/graph/evaluate.h"
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

namespace fuselite::fusion {
namespace {

// The filters with dimensions 0 and 3 exchanged, as both forms of one channel for each filter have
// them: [O, KH, KW, 1] and [1, KH, KW, O]. kNone where they cannot be made.
ValueId TurnedFilters(Graph& graph, NodeId before, ValueId filters) {
  constexpr int32_t kOrder[] = {3, 1, 2, 0};
  Value turned;
  turned.name = graph.value(filters).name;
  turned.info = graph.value(filters).info;
  turned.info.data = nullptr;
  const Shape& shape = graph.value(filters).info.shape;
  turned.info.shape = Shape({shape[3], shape[1], shape[2], shape[0]});
  turned.info.quantization.axis =
      turned.info.quantization.per_channel() ? 3 - turned.info.quantization.axis : 0;
  Node node = MakeNode("TRANSPOSE", {filters, AddInts(graph, kOrder, "order")});
  const ValueId result = graph.AddValue(std::move(turned));
  node.outputs = {result};
  const NodeId id = graph.InsertBefore(before, std::move(node));
  Result<std::vector<Value>> values = Evaluate(graph, id);
  graph.Remove(id);
  if (!values.ok()) return kNone;
  graph.value(result) = std::move((*values)[0]);
  return result;
}

// What the two operators' parameters have in common.
template <class To, class From>
void CopyWindow(const From& from, To* to) {
  to->padding = from.padding;
  to->stride_w = from.stride_w;
  to->stride_h = from.stride_h;
  to->dilation_w = from.dilation_w;
  to->dilation_h = from.dilation_h;
  to->activation = from.activation;
  to->extra_padding = from.extra_padding;
}

// CONV_2D with as many groups as input channels, more than one.
bool HasAGroupForEachChannel(const kernels::OpDescription& op) {
  return op.inputs[1].shape[3] == 1 && op.inputs[0].shape[3] > 1 &&
         op.params.as<kernels::Conv2DParams>().quantized_bias_type == DataType::kNone;
}

// DEPTHWISE_CONV_2D of one channel. Hybrid ones are quantized asymmetrically, which CONV_2D does
// for filters with different scales only.
bool HasOneChannel(const kernels::OpDescription& op) {
  if (op.inputs[0].shape[3] != 1) return false;
  if (op.inputs[0].type != DataType::kFloat32 || op.inputs[1].type == DataType::kFloat32) {
    return true;
  }
  return kernels::Conv2DHasSeveralScales(op, kernels::Conv2DShape());
}

}  // namespace

bool RegroupConvolution(Graph& graph, NodeId id, RewriteContext& context) {
  const bool regular = Is(graph, id, "CONV_2D");
  if (!regular && !Is(graph, id, "DEPTHWISE_CONV_2D")) return false;
  const kernels::OpDescription before = graph.Describe(id);
  if (!before.inputs[1].constant()) return false;
  if (!(regular ? HasAGroupForEachChannel(before) : HasOneChannel(before))) return false;
  Node node = MakeNode(regular ? "DEPTHWISE_CONV_2D" : "CONV_2D", graph.node(id).inputs);
  if (regular) {
    auto& params = node.params.as<kernels::DepthwiseConv2DParams>();
    CopyWindow(before.params.as<kernels::Conv2DParams>(), &params);
    params.depth_multiplier = before.inputs[1].shape[0] / before.inputs[0].shape[3];
  } else {
    CopyWindow(before.params.as<kernels::DepthwiseConv2DParams>(),
               &node.params.as<kernels::Conv2DParams>());
  }
  node.inputs[1] = TurnedFilters(graph, id, node.inputs[1]);
  if (node.inputs[1] == kNone) return false;
  node.outputs = graph.node(id).outputs;
  node.tail = graph.node(id).tail;
  node.tail_inputs = graph.node(id).tail_inputs;
  node.host_nodes = graph.node(id).host_nodes;
  // Groups of one channel are emitted, too, but fill few of a vector's lanes.
  const bool any = regular && before.inputs[1].type == DataType::kFloat32;
  const auto accepts = [&](const auto& op) {
    return context.AcceptsComposite(op, any ? nullptr : &before);
  };
  if (!ReplaceIf(graph, id, std::move(node), accepts)) return false;
  context.Record(regular ? "make a CONV_2D of single channels depthwise"
                         : "make a DEPTHWISE_CONV_2D of one channel regular",
                 graph.node(id).host_nodes);
  return true;
}

}  // namespace fuselite::fusion
