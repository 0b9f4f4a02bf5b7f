// A convolution to a few channels with blocks of its outputs as channels (output_blocks.h): the
// heads that give a mask, a depth or a color for each pixel, and the first layers of small networks
// of bytes.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/convolutions/output_blocks.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv2d/conv2d.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::fusion {
namespace {

// Weights grow with the blocks: so many blocks repay reading them.
constexpr int64_t kLeastBlocks = 64;
// Terms of a sum below which bringing the outputs to their places takes as long as the sums.
constexpr int64_t kLeastTerms = 64;
// The largest share of the multiplications without blocks that those with them may take.
constexpr double kLargestPart = 0.7;
// Sums of bytes in a vector of 64 bytes, and terms that one dot product adds to each.
constexpr int32_t kSums = 16, kTerms = 4;
// The largest share of the time without pairs that pairs may take.
constexpr double kLargestPartOfPairs = 0.9;
// The dot products in whose time a vector of sums is brought to bytes.
constexpr int64_t kTailProducts = 4;

BlockAxis BlocksOf(const kernels::WindowAxis& axis, int32_t size) {
  BlockAxis block{
      .size = size, .stride = size * axis.stride, .per_output = -axis.stride, .per_tap = 1};
  block.blocks = static_cast<int32_t>(CeilDiv(axis.output, size));
  block.taps = axis.filter + (size - 1) * axis.stride;
  block.before = axis.before;
  block.after = (block.blocks - 1) * block.stride + block.taps - block.before - axis.input;
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

int64_t CountOf(const OutputBlocks& blocks) {
  return int64_t{blocks.batch} * blocks.y.blocks * blocks.x.blocks;
}

// Squares of an image, parts of a line: with the fewest multiplications; nullopt where they repay
// nothing.
std::optional<OutputBlocks> PlanSquares(const kernels::Conv2DShape& shape) {
  if (shape.depth() < kLeastTerms) return std::nullopt;
  const auto& [y, x] = shape.window;
  if (std::max(y.stride, x.stride) > 1) return std::nullopt;
  std::optional<OutputBlocks> best;
  double least = kLargestPart * shape.window.taps();
  for (int32_t size = 2; FillsLanes(shape.channels_out, size); ++size) {
    const OutputBlocks blocks = BlocksOf(shape, y.output == 1 ? 1 : size, x.output == 1 ? 1 : size);
    if (!FillsLanes(blocks.channels_out, blocks.outputs())) break;
    const double taps = TapsOf(blocks, shape.window);
    if (CountOf(blocks) < kLeastBlocks || taps >= least) continue;
    least = taps;
    best = blocks;
  }
  return best;
}

// What a vector of sums takes: dot products over the rows of its window, and its tail.
int64_t ProductsOf(int32_t rows, int32_t taps, int32_t channels) {
  return rows * CeilDiv(int64_t{taps} * channels, kTerms) + kTailProducts;
}

// Pairs of a row, which lie in place: as many dot products of whole vectors as there were of half
// ones serve two outputs, but for taps that only one of them meets.
std::optional<OutputBlocks> PlanPairs(const kernels::Conv2DShape& shape) {
  const auto& [y, x] = shape.window;
  if (x.output % 2 != 0) return std::nullopt;
  const OutputBlocks pairs = BlocksOf(shape, 1, 2);
  const int64_t alone = ProductsOf(y.filter, x.filter, shape.channels_in);
  const int64_t paired = ProductsOf(y.filter, pairs.x.taps, shape.channels_in);
  const bool pays =
      static_cast<double>(paired) < 2 * kLargestPartOfPairs * static_cast<double>(alone);
  if (!pays || CountOf(pairs) < kLeastBlocks || pairs.x.after < 0 || pairs.y.after < 0) {
    return std::nullopt;
  }
  return pairs;
}

// Whether sums of bytes leave halves of vectors empty, and outputs lie side by side: those that are
// written in their places among others' do not.
bool TakesPairs(const Graph& graph, const Node& node, Isa isa) {
  const bool is_byte = BitWidth(graph.value(node.inputs[0]).info.type) == 8;
  const auto joins = [&](const Consumers::Reader& reader) {
    return graph.node(reader.node).op->places_inputs;
  };
  return isa.has(Feature::kAvx512Vnni) && is_byte &&
         std::ranges::none_of(graph.consumers(node.outputs[0]), joins);
}

std::optional<OutputBlocks> PlanBlocks(const kernels::OpDescription& op, bool takes_pairs) {
  const auto shape = kernels::ResolveConv2D(op);
  if (shape->groups != 1) return std::nullopt;
  if (std::max(shape->window.y.dilation, shape->window.x.dilation) > 1) return std::nullopt;
  std::optional<OutputBlocks> squares = PlanSquares(*shape);
  return squares || !takes_pairs ? squares : PlanPairs(*shape);
}

}  // namespace

bool ConvolutionInBlocks(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONV_2D")) return false;
  // Asked of every convolution in each round: most have more channels.
  if (graph.value(graph.node(id).outputs[0]).info.shape.dim(-1) * 2 > kSums) return false;
  const Node node = graph.node(id);
  const BlockOperands operands{node.inputs[0], node.inputs[1],
                               node.inputs.size() > 2 ? node.inputs[2] : kNone};
  if (!CanTakeBlocks(graph, node, operands)) return false;
  const kernels::OpDescription before = graph.Describe(id);
  const std::optional<OutputBlocks> blocks =
      PlanBlocks(before, TakesPairs(graph, node, context.isa()));
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
