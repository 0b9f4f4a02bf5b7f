#include "fusion/rewrites/output_blocks.h"

#include <utility>

#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "kernels/space/space.h"
#include "kernels/tail/tail.h"

namespace fuselite::fusion {
namespace {

// The values of each channel of a constant, once for each output of a block.
template <class T>
void RepeatValues(ChannelValues<T>* values, int64_t times) {
  if (values->size() <= 1) return;
  std::vector<T> repeated;
  for (int64_t i = 0; i < times; ++i) {
    for (const T value : *values) repeated.push_back(value);
  }
  *values = ChannelValues<T>(std::move(repeated));
}

TensorInfo Repeated(const TensorInfo& info, const OutputBlocks& blocks, const Shape& shape) {
  TensorInfo result = info;
  result.shape = shape;
  result.data = nullptr;
  RepeatValues(&result.quantization.scales, blocks.outputs());
  RepeatValues(&result.quantization.zero_points, blocks.outputs());
  return result;
}

// Stages that are without operands may have numbers for each channel all the same.
kernels::Tail Repeated(kernels::Tail tail, const OutputBlocks& blocks) {
  for (kernels::TailStage& stage : tail.stages) {
    RepeatValues(&stage.requantize.multipliers, blocks.outputs());
    RepeatValues(&stage.requantize.shifts, blocks.outputs());
    RepeatValues(&stage.scales, blocks.outputs());
    RepeatValues(&stage.real_scales, blocks.outputs());
  }
  return tail;
}

// [O, KH, KW, I] as [size * size * O, taps, taps, I].
ValueId BlockFilters(Graph& graph, ValueId id, const OutputBlocks& blocks) {
  const Value& filters = graph.value(id);
  const TensorInfo& info = filters.info;
  const int32_t s = blocks.size, outputs = blocks.channels_out;
  const int64_t pixel = int64_t{blocks.channels_in} * BitWidth(info.type) / 8;
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
  const Shape shape({blocks.channels(), blocks.y.taps, blocks.x.taps, blocks.channels_in});
  return graph.AddConstant(Repeated(info, blocks, shape), bytes, filters.name);
}

// [O] as [size * size * O].
ValueId BlockBias(Graph& graph, ValueId id, const OutputBlocks& blocks) {
  const Value& bias = graph.value(id);
  const auto* from = static_cast<const std::byte*>(bias.info.data);
  std::vector<std::byte> bytes;
  for (int32_t i = 0; i < blocks.outputs(); ++i) {
    bytes.insert(bytes.end(), from, from + bias.info.bytes());
  }
  return graph.AddConstant(Repeated(bias.info, blocks, Shape({blocks.channels()})), bytes,
                           bias.name);
}

}  // namespace

bool CanTakeBlocks(const Graph& graph, const Node& node, const BlockOperands& operands) {
  const auto info = [&](ValueId id) -> const TensorInfo& { return graph.value(id).info; };
  const DataType activations = info(operands.x).type, filters = info(operands.filters).type;
  const bool hybrid = activations == DataType::kFloat32 && filters != DataType::kFloat32;
  const bool known = info(operands.filters).constant() &&
                     (operands.bias == kNone || info(operands.bias).constant());
  return known && !hybrid && BitWidth(filters) % 8 == 0 && node.tail_inputs == 0;
}

Node ConvolutionOfBlocks(Graph& graph, const Node& node, const BlockOperands& operands,
                         const OutputBlocks& blocks) {
  Node conv = MakeNode("CONV_2D",
                       {operands.x, BlockFilters(graph, operands.filters, blocks),
                        operands.bias == kNone ? kNone : BlockBias(graph, operands.bias, blocks)});
  auto& params = conv.params.as<kernels::Conv2DParams>();
  params.padding = kernels::Padding::kValid;
  params.extra_padding = {.top = blocks.y.before,
                          .left = blocks.x.before,
                          .bottom = blocks.y.after,
                          .right = blocks.x.after};
  params.stride_w = params.stride_h = blocks.stride;
  params.dilation_w = params.dilation_h = 1;
  conv.tail = Repeated(node.tail, blocks);
  conv.host_nodes = node.host_nodes;
  return conv;
}

Node PlacesOfBlocks(Graph& graph, ValueId out, const OutputBlocks& blocks,
                    const std::vector<int>& host_nodes) {
  const Shape shape({blocks.batch, blocks.y.blocks, blocks.x.blocks, blocks.channels()});
  Node places = MakeNode("DEPTH_TO_SPACE", {AddShaped(graph, out, shape)});
  places.params.as<kernels::BlockSizeParams>().block_size = blocks.size;
  places.outputs = {out};
  places.host_nodes = host_nodes;
  return places;
}

}  // namespace fuselite::fusion
