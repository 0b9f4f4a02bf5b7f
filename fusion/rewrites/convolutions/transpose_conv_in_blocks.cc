// The outputs of a transposed convolution whose positions leave the same remainders by the strides
// are an ordinary convolution each, of as many channels as it has: blocks of all remainders are one
// (output_blocks.h). Where the stride is 1, there is but one remainder.
#include <optional>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/convolutions/output_blocks.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::fusion {
namespace {

std::optional<OutputBlocks> PlanBlocks(const kernels::OpDescription& op) {
  const auto shape = kernels::ResolveTransposeConv(op);
  const auto& [y, x] = shape->window;
  const auto block_y = BlocksOfTransposed(y), block_x = BlocksOfTransposed(x);
  if (!block_y || !block_x) return std::nullopt;
  const OutputBlocks blocks{.y = *block_y,
                            .x = *block_x,
                            .batch = shape->batch,
                            .channels_in = shape->channels_in,
                            .channels_out = shape->channels_out};
  if (blocks.outputs() == 1) return blocks;
  const bool fewer_taps = block_y->taps * block_x->taps < y.filter * x.filter;
  if (!fewer_taps || !blocks.have_places() || !FillsLanes(blocks.channels_out, blocks.outputs())) {
    return std::nullopt;
  }
  return blocks;
}

}  // namespace

bool TransposeConvInBlocks(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "TRANSPOSE_CONV")) return false;
  const Node node = graph.node(id);
  const BlockOperands operands{node.inputs[2], node.inputs[1],
                               node.inputs.size() > 3 ? node.inputs[3] : kNone};
  // That of a transposed convolution is scaled otherwise than CONV_2D's.
  if (!CanTakeBlocks(graph, node, operands) || HasDynamicRange(graph, node)) return false;
  const kernels::OpDescription before = graph.Describe(id);
  const std::optional<OutputBlocks> blocks = PlanBlocks(before);
  if (!blocks) return false;
  const bool plain = blocks->outputs() == 1;
  std::optional<Node> places;
  if (!plain) {
    places = PlacesOfBlocks(graph, node.outputs[0], *blocks, node.host_nodes);
    if (!blocks->lie_in_place() && !context.AcceptsComposite(graph.Describe(*places))) return false;
  }
  Node conv = ConvolutionOfBlocks(graph, node, operands, *blocks);
  const auto& from = node.params.as<kernels::TransposeConvParams>();
  conv.params.as<kernels::Conv2DParams>().activation = from.activation;
  conv.params.as<kernels::Conv2DParams>().quantized_bias_type = from.quantized_bias_type;
  conv.outputs = {plain ? node.outputs[0] : places->inputs[0]};
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
