#include "fusion/rewrites/convolutions/output_blocks.h"

#include <optional>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/channel_values.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "kernels/space/space.h"

namespace fuselite::fusion {
namespace {

// The values of each channel of a constant, once for each output of a block.
template <class T>
void RepeatValues(ChannelValues<T>& values, int64_t times) {
  if (values.size() <= 1) return;
  std::vector<T> repeated;
  for (int64_t i = 0; i < times; ++i) {
    for (const T value : values) repeated.push_back(value);
  }
  values = ChannelValues<T>(std::move(repeated));
}

TensorInfo Repeated(const TensorInfo& info, int64_t times, const Shape& shape) {
  TensorInfo result = info;
  result.shape = shape;
  result.data = nullptr;
  ForChannelValues(result.quantization, [&](auto& values) { RepeatValues(values, times); });
  return result;
}

// [O, KH, KW, I] as [outputs * O, taps, taps, I].
ValueId BlockFilters(Graph& graph, ValueId id, const OutputBlocks& blocks) {
  const Value& filters = graph.value(id);
  const TensorInfo& info = filters.info;
  const int32_t outputs = blocks.channels_out;
  const int64_t pixel = int64_t{blocks.channels_in} * BitWidth(info.type) / 8;
  const int32_t zero = info.type == DataType::kUInt8 ? info.quantization.zero_point() : 0;
  std::vector<std::byte> bytes;
  for (int32_t channel = 0; channel < blocks.channels(); ++channel) {
    const int32_t o = channel % outputs, place = channel / outputs;
    const int32_t ry = place / blocks.x.size, rx = place % blocks.x.size;
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
  const Shape shape({blocks.channels(), blocks.y.taps, blocks.x.taps, blocks.channels_in});
  return graph.AddConstant(Repeated(info, blocks.outputs(), shape), bytes, filters.name);
}

}  // namespace

std::optional<BlockAxis> BlocksOfTransposed(const kernels::WindowAxis& axis) {
  const int32_t s = axis.stride, reach = axis.filter - 1 - axis.before;
  if (axis.input % s != 0 || reach < 0) return std::nullopt;
  BlockAxis block{.blocks = axis.input / s, .size = s, .per_output = 1, .per_tap = -s};
  block.before = reach / s;
  block.first_tap = axis.before + block.before * s;
  const int32_t last = (s - 1 + axis.before) / s;
  block.taps = last + block.before + 1;
  block.after = block.blocks - 1 + last - (axis.output - 1);
  if (block.after < 0) return std::nullopt;
  return block;
}

ValueId RepeatedBias(Graph& graph, ValueId id, int64_t times) {
  const Value& bias = graph.value(id);
  const auto* from = static_cast<const std::byte*>(bias.info.data);
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < times; ++i) {
    bytes.insert(bytes.end(), from, from + bias.info.bytes());
  }
  const Shape shape({static_cast<int32_t>(times * bias.info.elements())});
  return graph.AddConstant(Repeated(bias.info, times, shape), bytes, bias.name);
}

kernels::Tail RepeatedTail(kernels::Tail tail, int64_t times) {
  ForChannelValues(tail, [&](auto& values) { RepeatValues(values, times); });
  return tail;
}

bool CanTakeBlocks(const Graph& graph, const Node& node, const BlockOperands& operands) {
  const auto info = [&](ValueId id) -> const TensorInfo& { return graph.value(id).info; };
  const DataType filters = info(operands.filters).type;
  const bool known = info(operands.filters).constant() &&
                     (operands.bias == kNone || info(operands.bias).constant());
  return known && BitWidth(filters) % 8 == 0 && node.tail_inputs == 0;
}

Node ConvolutionOfBlocks(Graph& graph, const Node& node, const BlockOperands& operands,
                         const OutputBlocks& blocks) {
  const ValueId filters = BlockFilters(graph, operands.filters, blocks);
  const ValueId bias =
      operands.bias == kNone ? kNone : RepeatedBias(graph, operands.bias, blocks.outputs());
  Node conv = MakeNode("CONV_2D", {operands.x, filters, bias});
  auto& params = conv.params.as<kernels::Conv2DParams>();
  const auto axis = [](const BlockAxis& block) {
    return kernels::WindowAxis{
        .stride = block.stride, .before = block.before, .after = block.after};
  };
  conv.op->set_window(conv.params, {.y = axis(blocks.y), .x = axis(blocks.x)});
  params.dilation_w = params.dilation_h = 1;
  conv.tail = RepeatedTail(node.tail, blocks.outputs());
  conv.host_nodes = node.host_nodes;
  return conv;
}

Node PlacesOfBlocks(Graph& graph, ValueId out, const OutputBlocks& blocks,
                    const std::vector<int>& host_nodes) {
  const Shape shape({blocks.batch, blocks.y.blocks, blocks.x.blocks, blocks.channels()});
  const ValueId channels = AddShaped(graph, out, shape);
  Node places = blocks.lie_in_place() ? ReshapeTo(graph, channels, blocks.whole())
                                      : MakeNode("DEPTH_TO_SPACE", {channels});
  if (!blocks.lie_in_place()) {
    places.params.as<kernels::BlockSizeParams>().block_size = blocks.y.size;
  }
  places.outputs = {out};
  places.host_nodes = host_nodes;
  return places;
}

}  // namespace fuselite::fusion
