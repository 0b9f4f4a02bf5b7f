// A convolution to a few channels with blocks of its outputs as channels (output_blocks.h): the
// heads that give a mask, a depth or a color for each pixel.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/output_blocks.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv2d/conv2d.h"
#include "runtime/ceil_div.h"

namespace fuselite::fusion {
namespace {

// Weights grow with the blocks: so many blocks repay reading them.
constexpr int64_t kLeastBlocks = 64;
// Terms of a sum below which bringing the outputs to their places takes as long as the sums.
constexpr int64_t kLeastTerms = 64;
// Of the multiplications without blocks, what those with them may take at most.
constexpr double kLargestPart = 0.7;

BlockAxis BlocksOf(const kernels::WindowAxis& axis, int32_t size) {
  BlockAxis block{.size = size, .stride = size, .per_output = -1, .per_tap = 1};
  block.blocks = static_cast<int32_t>(CeilDiv(axis.output, size));
  block.taps = axis.filter + size - 1;
  block.before = axis.before;
  block.after = (block.blocks - 1) * size + block.taps - block.before - axis.input;
  return block;
}

// Taps for each output, counted with those that are zeros and with blocks that reach beyond.
double TapsOf(const OutputBlocks& blocks, const kernels::Window& window) {
  const double outputs = 1.0 * window.y.output * window.x.output;
  return 1.0 * blocks.y.blocks * blocks.x.blocks * blocks.y.taps * blocks.x.taps / outputs;
}

OutputBlocks BlocksOf(const kernels::Conv2DShape& shape, int32_t height, int32_t width) {
  return {.y = BlocksOf(shape.window.y, height),
          .x = BlocksOf(shape.window.x, width),
          .batch = shape.batch,
          .channels_in = shape.channels_in,
          .channels_out = shape.channels_out};
}

// Squares of an image, parts of a line: with the fewest multiplications; nullopt where they repay
// nothing.
std::optional<OutputBlocks> PlanBlocks(const kernels::OpDescription& op) {
  const auto shape = kernels::ResolveConv2D(op);
  if (shape->groups != 1 || shape->depth() < kLeastTerms) return std::nullopt;
  const auto& [y, x] = shape->window;
  if (std::max({y.stride, x.stride, y.dilation, x.dilation}) > 1) return std::nullopt;
  std::optional<OutputBlocks> best;
  double least = kLargestPart * shape->window.taps();
  for (int32_t size = 2; FillsLanes(shape->channels_out, size); ++size) {
    const OutputBlocks blocks =
        BlocksOf(*shape, y.output == 1 ? 1 : size, x.output == 1 ? 1 : size);
    if (!FillsLanes(blocks.channels_out, blocks.outputs())) break;
    const int64_t count = int64_t{blocks.batch} * blocks.y.blocks * blocks.x.blocks;
    const double taps = TapsOf(blocks, shape->window);
    if (count < kLeastBlocks || taps >= least) continue;
    least = taps;
    best = blocks;
  }
  return best;
}

}  // namespace

bool ConvolutionInBlocks(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONV_2D")) return false;
  // Asked of every convolution in each round: most have more channels.
  if (!FillsLanes(graph.value(graph.node(id).outputs[0]).info.shape.dim(-1), 2)) return false;
  const Node node = graph.node(id);
  const BlockOperands operands{node.inputs[0], node.inputs[1],
                               node.inputs.size() > 2 ? node.inputs[2] : kNone};
  if (!CanTakeBlocks(graph, node, operands)) return false;
  const kernels::OpDescription before = graph.Describe(id);
  const std::optional<OutputBlocks> blocks = PlanBlocks(before);
  if (!blocks) return false;
  const ValueId out = node.outputs[0];
  const Shape shape = graph.value(out).info.shape;
  const Shape whole = blocks->whole();
  const bool cuts = whole != shape;
  Node places =
      PlacesOfBlocks(graph, cuts ? AddShaped(graph, out, whole) : out, *blocks, node.host_nodes);
  if (!blocks->lie_in_place() && !context.AcceptsComposite(graph.Describe(places))) return false;
  Node conv = ConvolutionOfBlocks(graph, node, operands, *blocks);
  const auto& from = node.params.as<kernels::Conv2DParams>();
  conv.params.as<kernels::Conv2DParams>().activation = from.activation;
  conv.params.as<kernels::Conv2DParams>().quantized_bias_type = from.quantized_bias_type;
  conv.outputs = {places.inputs[0]};
  if (!context.AcceptsComposite(graph.Describe(conv), &before)) return false;
  graph.InsertBefore(id, std::move(conv));
  if (cuts) {
    Node cut =
        MakeNode("SLICE", {places.outputs[0], AddInts(graph, std::array{0, 0, 0, 0}, "begin"),
                           AddInts(graph, shape.dims(), "size")});
    cut.outputs = node.outputs;
    cut.host_nodes = node.host_nodes;
    graph.InsertBefore(id, std::move(places));
    graph.Replace(id, std::move(cut));
  } else {
    graph.Replace(id, std::move(places));
  }
  context.Record("convolve with blocks of outputs as channels", node.host_nodes);
  return true;
}

}  // namespace fuselite::fusion
