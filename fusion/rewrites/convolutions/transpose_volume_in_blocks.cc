// CONV_3D_TRANSPOSE to a few channels as CONV_3D with blocks of all remainders by the strides as
// channels (output_blocks.h), which a TRANSPOSE brings to their places.
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/convolutions/output_blocks.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/conv3d/conv3d.h"
#include "kernels/shape_rules.h"

namespace fuselite::fusion {
namespace {

struct VolumeBlocks {
  std::array<BlockAxis, 3> axes;  // depth, height, width
  int32_t batch = 0, channels_in = 0, channels_out = 0;

  int32_t outputs() const { return axes[0].size * axes[1].size * axes[2].size; }
  int32_t channels() const { return outputs() * channels_out; }
  int32_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
};

// nullopt where blocks repay nothing.
std::optional<VolumeBlocks> PlanBlocks(const kernels::OpDescription& op) {
  const Shape &in = op.inputs[2].shape, &out = op.outputs[0].shape, &filter = op.inputs[1].shape;
  const auto window = kernels::ResolveConv3D(op, out);
  VolumeBlocks blocks{.axes = {}, .batch = in[0], .channels_in = in[4], .channels_out = out[4]};
  for (int i = 0; i < 3; ++i) {
    const kernels::WindowAxis& axis = window->axes[i];
    const auto block = BlocksOfTransposed(axis);
    if (!block || axis.dilation != 1) return std::nullopt;
    blocks.axes[i] = *block;
  }
  const bool fewer_taps = blocks.taps() < filter[0] * filter[1] * filter[2];
  if (!fewer_taps || !FillsLanes(blocks.channels_out, blocks.outputs())) return std::nullopt;
  return blocks;
}

// Calls f(i, j, k) for all indices below the counts.
template <class F>
void ForVolume(int32_t depth, int32_t height, int32_t width, F f) {
  for (int32_t i = 0; i < depth; ++i) {
    for (int32_t j = 0; j < height; ++j) {
      for (int32_t k = 0; k < width; ++k) f(i, j, k);
    }
  }
}

// [D, H, W, O, I] as [taps, taps, taps, I, remainders * O].
ValueId BlockFilters(Graph& graph, ValueId id, const VolumeBlocks& blocks) {
  const BlockAxis &z = blocks.axes[0], &y = blocks.axes[1], &x = blocks.axes[2];
  const TensorInfo info = graph.value(id).info;
  const Shape& from = info.shape;
  const int32_t in = blocks.channels_in, out = blocks.channels_out;
  std::vector<float> values;
  ForVolume(z.taps, y.taps, x.taps, [&](int32_t tz, int32_t ty, int32_t tx) {
    for (int32_t c = 0; c < in; ++c) {
      ForVolume(z.size, y.size, x.size, [&](int32_t rz, int32_t ry, int32_t rx) {
        const int32_t kz = z.TapOf(rz, tz), ky = y.TapOf(ry, ty), kx = x.TapOf(rx, tx);
        const bool met =
            kz >= 0 && ky >= 0 && kx >= 0 && kz < from[0] && ky < from[1] && kx < from[2];
        for (int32_t o = 0; o < out; ++o) {
          const int64_t place = (((int64_t{kz} * from[1] + ky) * from[2] + kx) * out + o) * in + c;
          values.push_back(met ? kernels::LoadUnaligned<float>(info.data, place) : 0.0f);
        }
      });
    }
  });
  TensorInfo result = info;
  result.shape = Shape({z.taps, y.taps, x.taps, in, blocks.channels()});
  result.data = nullptr;
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return graph.AddConstant(result, {bytes, bytes + values.size() * sizeof(float)}, "filters");
}

Shape PaddedShape(const VolumeBlocks& blocks) {
  Shape shape({blocks.batch});
  for (const BlockAxis& axis : blocks.axes) shape.push_back(axis.blocks + axis.taps - 1);
  shape.push_back(blocks.channels_in);
  return shape;
}

// PAD to what the blocks' windows reach; the output is left to the caller.
Node Padding(Graph& graph, ValueId x, const VolumeBlocks& blocks) {
  std::vector<int32_t> amounts = {0, 0};
  for (const BlockAxis& axis : blocks.axes) {
    amounts.insert(amounts.end(), {axis.before, axis.after});
  }
  amounts.insert(amounts.end(), {0, 0});
  const TensorInfo info{.type = DataType::kInt32, .shape = Shape({5, 2})};
  return MakeNode("PAD",
                  {x, graph.AddConstant(info, std::as_bytes(std::span(amounts)), "padding")});
}

// CONV_3D of `x`, which is padded; the output is left to the caller.
Node Convolution(Graph& graph, const Node& node, const BlockOperands& operands, ValueId x,
                 const VolumeBlocks& blocks) {
  const ValueId filters = BlockFilters(graph, operands.filters, blocks);
  const ValueId bias =
      operands.bias == kNone ? kNone : RepeatedBias(graph, operands.bias, blocks.outputs());
  Node conv = MakeNode("CONV_3D", {x, filters, bias});
  auto& params = conv.params.as<kernels::Conv3DParams>();
  params.padding = kernels::Padding::kValid;
  params.stride_d = params.stride_h = params.stride_w = 1;
  params.dilation_d = params.dilation_h = params.dilation_w = 1;
  params.activation = node.params.as<kernels::Conv3DParams>().activation;
  conv.tail = RepeatedTail(node.tail, blocks.outputs());
  return conv;
}

// In which order the blocks' channels are the outputs.
ElementOrder PlacesOf(const VolumeBlocks& blocks) {
  const auto& [z, y, x] = blocks.axes;
  const Shape apart(
      {blocks.batch, z.blocks, y.blocks, x.blocks, z.size, y.size, x.size, blocks.channels_out});
  return *ElementOrder::OfTranspose(apart, std::array{0, 1, 4, 2, 5, 3, 6, 7});
}

}  // namespace

bool TransposeVolumeInBlocks(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "CONV_3D_TRANSPOSE")) return false;
  const Node node = graph.node(id);
  const BlockOperands operands{node.inputs[2], node.inputs[1],
                               node.inputs.size() > 3 ? node.inputs[3] : kNone};
  if (!CanTakeBlocks(graph, node, operands)) return false;
  const kernels::OpDescription before = graph.Describe(id);
  const std::optional<VolumeBlocks> blocks = PlanBlocks(before);
  if (!blocks) return false;
  const auto& [z, y, x] = blocks->axes;
  const ValueId padded = AddShaped(graph, operands.x, PaddedShape(*blocks));
  const ValueId channels =
      AddShaped(graph, node.outputs[0],
                Shape({blocks->batch, z.blocks, y.blocks, x.blocks, blocks->channels()}));
  Node padding = Padding(graph, operands.x, *blocks);
  padding.outputs = {padded};
  Node conv = Convolution(graph, node, operands, padded, *blocks);
  conv.outputs = {channels};
  if (!context.AcceptsComposite(graph.Describe(padding)) ||
      !context.AcceptsComposite(graph.Describe(conv), &before)) {
    return false;
  }
  padding.host_nodes = conv.host_nodes = node.host_nodes;
  graph.InsertBefore(id, std::move(padding));
  graph.InsertBefore(id, std::move(conv));
  graph.Replace(
      id, Rearranged(graph, id, channels, PlacesOf(*blocks), node.outputs[0], node.host_nodes));
  context.Record("convolve with the remainders of CONV_3D_TRANSPOSE as channels", node.host_nodes);
  return true;
}

}  // namespace fuselite::fusion
