// The outputs of a transposed convolution whose positions leave the same remainders by the strides
// are an ordinary convolution each, of as many channels as it has: blocks of all remainders are one
// (output_blocks.h). Where the stride is 1, there is but one remainder.
#include <optional>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/output_blocks.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::fusion {
namespace {

// nullopt where outputs are left over, or the window would not begin and end in the padding.
std::optional<BlockAxis> BlocksOf(const kernels::WindowAxis& axis) {
  const int32_t s = axis.stride, reach = axis.filter - 1 - axis.before;
  if (axis.input % s != 0 || reach < 0) return std::nullopt;
  BlockAxis block{.blocks = axis.input / s, .per_output = 1, .per_tap = -s};
  block.before = reach / s;
  block.first_tap = axis.before + block.before * s;
  const int32_t last = (s - 1 + axis.before) / s;
  block.taps = last + block.before + 1;
  block.after = block.blocks - 1 + last - (axis.output - 1);
  if (block.after < 0) return std::nullopt;
  return block;
}

std::optional<OutputBlocks> PlanBlocks(const kernels::OpDescription& op) {
  const auto shape = kernels::ResolveTransposeConv(op);
  if (!shape.ok()) return std::nullopt;
  const auto& [y, x] = shape->window;
  const auto block_y = BlocksOf(y), block_x = BlocksOf(x);
  if (!block_y || !block_x || y.stride != x.stride) return std::nullopt;
  const OutputBlocks blocks{.y = *block_y,
                            .x = *block_x,
                            .size = y.stride,
                            .batch = shape->batch,
                            .channels_in = shape->channels_in,
                            .channels_out = shape->channels_out};
  if (blocks.size == 1) return blocks;
  const bool fewer_taps = block_y->taps * block_x->taps < y.filter * x.filter;
  if (!fewer_taps || blocks.channels() > kMostBlockChannels) return std::nullopt;
  return blocks;
}

}  // namespace

bool TransposeConvInBlocks(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "TRANSPOSE_CONV")) return false;
  const Node node = graph.node(id);
  const BlockOperands operands{node.inputs[2], node.inputs[1],
                               node.inputs.size() > 3 ? node.inputs[3] : kNone};
  if (!CanTakeBlocks(graph, node, operands)) return false;
  const kernels::OpDescription before = graph.Describe(id);
  const std::optional<OutputBlocks> blocks = PlanBlocks(before);
  if (!blocks) return false;
  const bool plain = blocks->size == 1;
  std::optional<Node> places;
  if (!plain) {
    places = PlacesOfBlocks(graph, node.outputs[0], *blocks, node.host_nodes);
    if (!context.AcceptsComposite(graph.Describe(*places))) return false;  // int16
  }
  Node conv = ConvolutionOfBlocks(graph, node, operands, *blocks);
  const auto& from = node.params.as<kernels::TransposeConvParams>();
  conv.params.as<kernels::Conv2DParams>().activation = from.activation;
  conv.params.as<kernels::Conv2DParams>().quantized_bias_type = from.quantized_bias_type;
  conv.outputs = plain ? node.outputs : places->inputs;
  if (!context.AcceptsComposite(graph.Describe(conv), &before)) return false;
  if (plain) {
    graph.Replace(id, std::move(conv));
    context.Record("TRANSPOSE_CONV of stride 1 as CONV_2D", node.host_nodes);
    return true;
  }
  graph.InsertBefore(id, std::move(conv));
  graph.Replace(id, *std::move(places));
  context.Record("convolve with the remainders of TRANSPOSE_CONV as channels", node.host_nodes);
  return true;
}

}  // namespace fuselite::fusion
