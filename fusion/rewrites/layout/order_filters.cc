// PyTorch's pixel shuffle: a layer's channels become pixels, for which converters write a TRANSPOSE
// that gathers single elements. With the layer's filters in the order in which their channels are
// wanted, which costs nothing at run time, runs of channels are all that is left to move.
#include <algorithm>
#include <cstring>

#include "fusion/match.h"
#include "fusion/rewrites/channel_values.h"
#include "fusion/rewrites/layout/meets_transposes.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"
#include "runtime/memory/pages.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;

// A layer of one group with constant filters, whose tail reads no other value, functions of one
// operand behind it, and what reshapes their result.
struct Layer {
  NodeId id = kNone;
  std::vector<NodeId> functions, reshapes;  // the last one first
};

std::optional<Layer> LayerThatGives(const Graph& graph, ValueId value) {
  Layer layer;
  for (NodeId id = graph.producer(value); id != kNone; id = graph.producer(value)) {
    const Node& node = graph.node(id);
    const bool reshapes = node.op->reshapes && layer.functions.empty();
    if (!reshapes && (!IsElementwiseAlone(node) || node.inputs.size() != 1)) {
      layer.id = id;
      break;
    }
    (reshapes ? layer.reshapes : layer.functions).push_back(id);
    value = node.inputs[0];
  }
  if (layer.id == kNone || graph.node(layer.id).tail_inputs != 0) return std::nullopt;
  const bool conv = Is(graph, layer.id, "CONV_2D");
  if (!conv && !Is(graph, layer.id, "FULLY_CONNECTED")) return std::nullopt;
  const kernels::OpDescription op = graph.Describe(layer.id);
  if (conv && op.inputs[1].shape[3] != op.inputs[0].shape[3]) return std::nullopt;
  const auto constant = [](const TensorInfo& info) { return info.absent() || info.constant(); };
  if (!std::all_of(op.inputs.begin() + 1, op.inputs.end(), constant)) return std::nullopt;
  return layer;
}

// Which channel each of the new order was, and the order in which the result then has the layer's
// elements.
struct NewOrder {
  std::vector<int32_t> channels;
  ElementOrder order;
};

// nullopt where the innermost elements of the result are no channels, or lie side by side already.
std::optional<NewOrder> OrderChannels(const ElementOrder& order, int32_t channels) {
  std::vector<Piece> pieces = order.pieces();
  if (pieces.empty()) return std::nullopt;
  const auto is_channel = [&](const Piece& piece) { return piece.stride < channels; };
  if (!is_channel(pieces.back()) || pieces.back().stride == 1) return std::nullopt;
  const auto cut = [&](const Piece& p) { return is_channel(p) && p.size * p.stride > channels; };
  if (std::ranges::any_of(pieces, cut)) return std::nullopt;
  std::vector<int32_t> former = {0};
  int64_t stride = 1;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (!is_channel(*piece)) continue;
    const size_t inner = former.size();
    for (size_t c = inner; c < inner * static_cast<size_t>(piece->size); ++c) {
      former.push_back(former[c - inner] + static_cast<int32_t>(piece->stride));
    }
    piece->stride = stride;
    stride *= piece->size;
  }
  const TransposePlan plan = PlanTranspose(pieces);
  // There are no more pieces than before.
  return NewOrder{std::move(former), *ElementOrder::OfTranspose(plan.shape, plan.permutation)};
}

// Whether each channel of a constant with a row for each is whole bytes.
bool InWholeBytes(const TensorInfo& info) {
  return info.absent() || info.elements() / info.shape[0] * BitWidth(info.type) % 8 == 0;
}

template <class T>
void Order(ChannelValues<T>& values, const std::vector<int32_t>& channels) {
  if (values.size() <= 1) return;
  std::vector<T> ordered;
  for (const int32_t channel : channels) ordered.push_back(values[static_cast<size_t>(channel)]);
  values = ChannelValues<T>(std::move(ordered));
}

// A constant with a row for each channel, in the new order.
ValueId OrderedRows(Graph& graph, ValueId rows, const std::vector<int32_t>& channels) {
  TensorInfo info = graph.value(rows).info;
  const auto* const from = static_cast<const std::byte*>(info.data);
  const size_t size = info.bytes() / channels.size();
  std::vector<std::byte, PageAllocator<std::byte>> bytes(info.bytes());
  for (size_t c = 0; c < channels.size(); ++c) {
    std::memcpy(&bytes[c * size], from + static_cast<size_t>(channels[c]) * size, size);
  }
  ForChannelValues(info.quantization, [&](auto& values) { Order(values, channels); });
  info.data = nullptr;
  return graph.AddConstant(std::move(info), bytes, graph.value(rows).name);
}

// Puts the layer and what follows it on ordered filters; what they then give.
ValueId OrderLayer(Graph& graph, const Layer& layer, const std::vector<int32_t>& channels) {
  Node node = graph.node(layer.id);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone) node.inputs[i] = OrderedRows(graph, node.inputs[i], channels);
  }
  ForChannelValues(node.tail, [&](auto& values) { Order(values, channels); });
  const auto put = [&](NodeId id, Node made) {
    const Shape shape = graph.value(made.outputs[0]).info.shape;
    const ValueId out = AddShaped(graph, made.outputs[0], shape);
    made.outputs = {out};
    graph.Replace(id, std::move(made));
    return out;
  };
  ValueId out = put(layer.id, std::move(node));
  for (auto id = layer.functions.rbegin(); id != layer.functions.rend(); ++id) {
    Node function = graph.node(*id);
    function.inputs[0] = out;
    out = put(*id, std::move(function));
  }
  return out;
}

}  // namespace

bool OrderFilters(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "TRANSPOSE")) return false;
  const ValueId out = graph.node(id).outputs[0];
  const std::optional<Origin> origin = OriginOf(graph, out);
  if (!origin) return false;
  const std::optional<Layer> layer = LayerThatGives(graph, origin->source);
  if (!layer) return false;
  const TensorInfo& given = graph.value(graph.node(layer->id).outputs[0]).info;
  const std::optional<NewOrder> order = OrderChannels(origin->order, given.shape.dim(-1));
  if (!order) return false;
  std::vector<NodeId> between = ChainTo(graph, out).nodes;
  between.erase(between.begin());  // the TRANSPOSE itself
  between.insert(between.end(), layer->reshapes.begin(), layer->reshapes.end());
  std::vector<NodeId> own = between;
  own.insert(own.end(), layer->functions.begin(), layer->functions.end());
  own.push_back(layer->id);
  if (!OnlyReadWithin(graph, own, id)) return false;
  const kernels::OpDescription op = graph.Describe(layer->id);
  const std::span constants = std::span(op.inputs).subspan(1);
  if (!std::ranges::all_of(constants, InWholeBytes) || !context.Allows(constants)) return false;
  const std::vector<int> host_nodes = graph.node(id).host_nodes;
  own.push_back(id);
  const std::vector<int> concerned = MergeHostNodes(graph, own);
  const ValueId source = OrderLayer(graph, *layer, order->channels);
  graph.Replace(id, Rearranged(graph, id, source, order->order, out, host_nodes));
  for (const NodeId node : between) graph.Remove(node);
  context.Record("order filters as their channels are wanted", concerned);
  return true;
}

}  // namespace fuselite::fusion
