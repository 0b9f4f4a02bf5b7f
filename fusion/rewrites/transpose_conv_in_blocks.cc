// The outputs of a transposed convolution whose positions leave the same remainders by the strides
// are an ordinary convolution each, of as many channels as it has. A few channels fill few of a
// vector's lanes: with the remainders as channels of one convolution they fill more, and
// DEPTH_TO_SPACE brings them to their places. Taps that a remainder does not meet are zeros.
#include <optional>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/space/space.h"
#include "kernels/tail/tail.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::fusion {
namespace {

// What one vector of the widest machine, or one panel of the others, holds.
constexpr int32_t kMostChannels = 16;

// One dimension of the ordinary convolution: output position p stands for the outputs s p, s p + 1,
// ... s p + s - 1, s the stride, and sees the inputs from p - before on.
struct BlockAxis {
  int32_t taps, before, after;  // the latter two in inputs of padding
  // The filter's tap that remainder `r` meets at tap `t`; none where it lies outside.
  int32_t first_tap, stride;
  int32_t TapOf(int32_t r, int32_t t) const { return first_tap + r - t * stride; }
};

// nullopt where outputs are left over, or the window would not begin and end in the padding.
std::optional<BlockAxis> BlocksOf(const kernels::WindowAxis& axis) {
  const int32_t s = axis.stride, reach = axis.filter - 1 - axis.before;
  if (axis.input % s != 0 || reach < 0) return std::nullopt;
  BlockAxis block;
  block.stride = s;
  block.before = reach / s;
  block.first_tap = axis.before + block.before * s;
  const int32_t last = (s - 1 + axis.before) / s;
  block.taps = last + block.before + 1;
  block.after = axis.input / s - 1 + last - (axis.output - 1);
  if (block.after < 0) return std::nullopt;
  return block;
}

struct Blocks {
  kernels::TransposeConvShape shape;
  BlockAxis y, x;
  int32_t stride() const { return shape.window.y.stride; }
  int32_t remainders() const { return stride() * stride(); }
  int32_t channels() const { return remainders() * shape.channels_out; }
};

std::optional<Blocks> PlanBlocks(const kernels::OpDescription& op) {
  const auto shape = kernels::ResolveTransposeConv(op);
  if (!shape.ok()) return std::nullopt;
  const auto& [y, x] = shape->window;
  const auto block_y = BlocksOf(y), block_x = BlocksOf(x);
  if (!block_y || !block_x || y.stride != x.stride || y.stride == 1) return std::nullopt;
  const Blocks blocks{*shape, *block_y, *block_x};
  const bool fewer_taps = block_y->taps * block_x->taps < y.filter * x.filter;
  if (!fewer_taps || blocks.channels() > kMostChannels) return std::nullopt;
  return blocks;
}

// The values of each channel of a constant, once for each pair of remainders.
template <class T>
void RepeatValues(ChannelValues<T>* values, int64_t times) {
  if (values->size() <= 1) return;
  std::vector<T> repeated;
  for (int64_t i = 0; i < times; ++i) {
    for (const T value : *values) repeated.push_back(value);
  }
  *values = ChannelValues<T>(std::move(repeated));
}

TensorInfo Repeated(const TensorInfo& info, const Blocks& blocks, const Shape& shape) {
  TensorInfo result = info;
  result.shape = shape;
  result.data = nullptr;
  RepeatValues(&result.quantization.scales, blocks.remainders());
  RepeatValues(&result.quantization.zero_points, blocks.remainders());
  return result;
}

// Stages that are without operands may have numbers for each channel all the same.
kernels::Tail Repeated(kernels::Tail tail, const Blocks& blocks) {
  for (kernels::TailStage& stage : tail.stages) {
    RepeatValues(&stage.requantize.multipliers, blocks.remainders());
    RepeatValues(&stage.requantize.shifts, blocks.remainders());
    RepeatValues(&stage.scales, blocks.remainders());
    RepeatValues(&stage.real_scales, blocks.remainders());
  }
  return tail;
}

// [O, KH, KW, I] as [s * s * O, taps, taps, I].
ValueId BlockFilters(Graph& graph, ValueId id, const Blocks& blocks) {
  const Value& filters = graph.value(id);
  const TensorInfo& info = filters.info;
  const int32_t s = blocks.stride(), outputs = blocks.shape.channels_out;
  const int64_t pixel = int64_t{blocks.shape.channels_in} * BitWidth(info.type) / 8;
  const int32_t zero = info.type == DataType::kUInt8 ? info.quantization.zero_point() : 0;
  std::vector<std::byte> bytes;
  for (int32_t channel = 0; channel < blocks.channels(); ++channel) {
    const int32_t o = channel % outputs, ry = channel / outputs / s, rx = channel / outputs % s;
    for (int32_t tap = 0; tap < blocks.y.taps * blocks.x.taps; ++tap) {
      const int32_t ky = blocks.y.TapOf(ry, tap / blocks.x.taps),
                    kx = blocks.x.TapOf(rx, tap % blocks.x.taps);
      if (ky < 0 || kx < 0 || ky >= info.shape[1] || kx >= info.shape[2]) {
        bytes.insert(bytes.end(), pixel, static_cast<std::byte>(zero));
        continue;
      }
      const auto* from = static_cast<const std::byte*>(info.data) +
                         ((int64_t{o} * info.shape[1] + ky) * info.shape[2] + kx) * pixel;
      bytes.insert(bytes.end(), from, from + pixel);
    }
  }
  const Shape shape({blocks.channels(), blocks.y.taps, blocks.x.taps, blocks.shape.channels_in});
  return graph.AddConstant(Repeated(info, blocks, shape), bytes, filters.name);
}

// [O] as [s * s * O].
ValueId BlockBias(Graph& graph, ValueId id, const Blocks& blocks) {
  const Value& bias = graph.value(id);
  const auto* from = static_cast<const std::byte*>(bias.info.data);
  std::vector<std::byte> bytes;
  for (int32_t i = 0; i < blocks.remainders(); ++i) {
    bytes.insert(bytes.end(), from, from + bias.info.bytes());
  }
  return graph.AddConstant(Repeated(bias.info, blocks, Shape({blocks.channels()})), bytes,
                           bias.name);
}

// What brings the blocks' channels, a new value, to the places of `node`'s outputs.
Node DepthToSpace(Graph& graph, const Node& node, const Blocks& blocks) {
  const auto& [y, x] = blocks.shape.window;
  Node places =
      MakeNode("DEPTH_TO_SPACE", {AddShaped(graph, node.outputs[0],
                                            Shape({blocks.shape.batch, y.input / y.stride,
                                                   x.input / x.stride, blocks.channels()}))});
  places.params.as<kernels::BlockSizeParams>().block_size = blocks.stride();
  places.outputs = node.outputs;
  places.host_nodes = node.host_nodes;
  return places;
}

// The convolution of `node`'s blocks, whose output is left to the caller.
Node Convolution(Graph& graph, const Node& node, const Blocks& blocks) {
  const bool biased = node.inputs.size() > 3 && node.inputs[3] != kNone;
  Node conv = MakeNode("CONV_2D", {node.inputs[2], BlockFilters(graph, node.inputs[1], blocks),
                                   biased ? BlockBias(graph, node.inputs[3], blocks) : kNone});
  const auto& from = node.params.as<kernels::TransposeConvParams>();
  auto& params = conv.params.as<kernels::Conv2DParams>();
  params.padding = kernels::Padding::kValid;
  params.extra_padding = {.top = blocks.y.before,
                          .left = blocks.x.before,
                          .bottom = blocks.y.after,
                          .right = blocks.x.after};
  params.stride_w = params.stride_h = params.dilation_w = params.dilation_h = 1;
  params.activation = from.activation;
  params.quantized_bias_type = from.quantized_bias_type;
  conv.tail = Repeated(node.tail, blocks);
  conv.host_nodes = node.host_nodes;
  return conv;
}

}  // namespace

bool TransposeConvInBlocks(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "TRANSPOSE_CONV")) return false;
  const Node node = graph.node(id);
  const kernels::OpDescription before = graph.Describe(id);
  const bool hybrid = before.inputs[2].type == DataType::kFloat32 &&
                      before.inputs[1].type != DataType::kFloat32;  // sums terms in floats
  const bool known =
      before.inputs[1].constant() && (!before.has_input(3) || before.inputs[3].constant());
  if (hybrid || !known || node.tail_inputs != 0) return false;
  const std::optional<Blocks> blocks = PlanBlocks(before);
  if (!blocks) return false;
  Node places = DepthToSpace(graph, node, *blocks);
  if (!context.AcceptsComposite(graph.Describe(places))) return false;  // int16
  Node conv = Convolution(graph, node, *blocks);
  conv.outputs = places.inputs;
  if (!context.AcceptsComposite(graph.Describe(conv), &before)) return false;
  graph.InsertBefore(id, std::move(conv));
  graph.Replace(id, std::move(places));
  context.Record("convolve with the remainders of TRANSPOSE_CONV as channels", node.host_nodes);
  return true;
}

}  // namespace fuselite::fusion
