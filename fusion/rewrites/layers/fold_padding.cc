#include <array>
#include <optional>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/pool/pool.h"

namespace fuselite::fusion {
namespace {

// A PAD, or one that is only reshaped by dimensions of one element, in front of a window.
struct PadBefore {
  NodeId pad = kNone, reshape = kNone;
  kernels::ExtraPadding padding;
  Shape unpadded;  // what the window reads without the padding
};

// How `pad` pads `shape`, four dimensions of what it gives: before and behind each. nullopt where
// these are others than those of more than one element.
std::optional<std::array<int32_t, 8>> PaddingsOf(const Graph& graph, const Node& pad,
                                                 const Shape& shape) {
  const std::vector<int32_t> own = *IntConstant(graph, pad.inputs[1]);
  const Shape& padded = graph.value(pad.outputs[0]).info.shape;
  std::array<int32_t, 8> paddings{};
  int d = 0;
  for (int of_pad = 0; of_pad < padded.rank(); ++of_pad) {
    const int32_t before = own[2 * of_pad], behind = own[2 * of_pad + 1];
    if (padded[of_pad] == 1 && before + behind == 0) continue;
    while (d < 4 && shape[d] == 1) ++d;
    if (d == 4 || shape[d] != padded[of_pad]) return std::nullopt;
    paddings[2 * d] = before;
    paddings[2 * d + 1] = behind;
    ++d;
  }
  return paddings;
}

// PAD fills with zero, with the zero point where quantized: what a convolution takes beyond its
// input. PADV2 says what.
bool FillsWithZero(const Graph& graph, const Node& pad) {
  if (pad.op->name == "PAD") return true;
  return pad.op->name == "PADV2" && ScalarConstant(graph, pad.inputs[2]) == 0.0f;
}

// nullopt where another dimension than rows and columns is padded.
std::optional<PadBefore> FindPad(const Graph& graph, ValueId input) {
  PadBefore found;
  found.pad = graph.producer(input);
  if (found.pad != kNone && graph.node(found.pad).op->reshapes) {
    found.reshape = found.pad;
    found.pad = graph.producer(graph.node(found.reshape).inputs[0]);
  }
  if (found.pad == kNone || !FillsWithZero(graph, graph.node(found.pad))) return std::nullopt;
  found.unpadded = graph.value(input).info.shape;
  const auto p = PaddingsOf(graph, graph.node(found.pad), found.unpadded);
  if (!p) return std::nullopt;
  if ((*p)[0] || (*p)[1] || (*p)[6] || (*p)[7]) return std::nullopt;
  found.padding = {.top = (*p)[2], .left = (*p)[4], .bottom = (*p)[3], .right = (*p)[5]};
  found.unpadded.set(1, found.unpadded[1] - (*p)[2] - (*p)[3]);
  found.unpadded.set(2, found.unpadded[2] - (*p)[4] - (*p)[5]);
  return found;
}

// Whether no code stands for less than zero.
bool IsUnsigned(const TensorInfo& info) {
  const int32_t zero = info.quantization.zero_point();
  return (info.type == DataType::kUInt8 && zero == 0) ||
         (info.type == DataType::kInt8 && zero == -128);
}

// Whether the value is made by a clamp at zero or above, or cannot be below.
bool IsNonNegative(const Graph& graph, ValueId value) {
  const TensorInfo& info = graph.value(value).info;
  if (!info.quantization.empty() && !info.quantization.per_channel() && IsUnsigned(info)) {
    return true;
  }
  const NodeId id = graph.producer(value);
  if (id == kNone) return false;
  const Node& node = graph.node(id);
  if (!node.tail.empty()) {
    const kernels::TailStage& last = node.tail.stages.back();
    return last.kind == kernels::TailStage::Kind::kUnary &&
           last.unary == kernels::UnaryKind::kClamp && last.a >= 0;
  }
  const kernels::Activation activation = FusedActivation(node);
  return activation == kernels::Activation::kRelu || activation == kernels::Activation::kRelu6 ||
         node.op->name == "RELU" || node.op->name == "RELU6";
}

bool EveryWindowHasATap(const kernels::WindowAxis& axis) {
  for (int32_t o = 0; o < axis.output; ++o) {
    if (axis.first_tap(axis.start(o)) >= axis.last_tap(axis.start(o))) return false;
  }
  return true;
}

// A maximum over `source` leaves its padding out, a PAD before it counts as zeros: the same where
// nothing is below zero and no window is all padding. `pool` has the padding of its own.
bool PadsLikeZeros(const Graph& graph, const Node& pool, ValueId source, const Shape& unpadded) {
  if (!IsNonNegative(graph, source)) return false;
  kernels::OpDescription op;
  op.op = pool.op;
  op.params = pool.params;
  op.inputs = {graph.value(source).info};
  op.inputs[0].shape = unpadded;
  const kernels::Window window = kernels::ResolvePool(op)->window;
  return EveryWindowHasATap(window.y) && EveryWindowHasATap(window.x);
}

// The window with the padding as its own, its input left as it is. Extra padding is outside of the
// window's, so a second PAD adds to the first.
Node WithPadding(const Graph& graph, NodeId id, const kernels::ExtraPadding& padding) {
  Node folded = graph.node(id);
  kernels::ExtraPadding& extra = folded.op->extra_padding(folded.params);
  extra.top += padding.top;
  extra.left += padding.left;
  extra.bottom += padding.bottom;
  extra.right += padding.right;
  return folded;
}

}  // namespace

bool FoldPadding(Graph& graph, NodeId id, RewriteContext& context) {
  if (graph.node(id).op->extra_padding == nullptr) return false;
  const std::optional<PadBefore> found = FindPad(graph, graph.node(id).inputs[0]);
  if (!found) return false;
  const ValueId source = graph.node(found->pad).inputs[0];
  const ValueId padded = graph.node(found->pad).outputs[0];
  if (graph.value(source).info.quantization != graph.value(padded).info.quantization) return false;
  Node folded = WithPadding(graph, id, found->padding);
  if (folded.op->name == "MAX_POOL_2D" && !PadsLikeZeros(graph, folded, source, found->unpadded)) {
    return false;
  }
  kernels::OpDescription after = graph.Describe(folded);
  after.inputs[0].shape = found->unpadded;
  if (!context.AcceptsInsteadOf(graph.Describe(id), after)) return false;
  std::vector<NodeId> pattern = {found->pad, id};
  if (found->reshape != kNone) pattern.insert(pattern.begin() + 1, found->reshape);
  const std::vector<int> host_nodes = MergeHostNodes(graph, pattern);
  context.Record(internal::Join("fold padding into ", folded.op->name), host_nodes);
  folded.inputs[0] = source;
  if (found->reshape != kNone) {
    const std::vector<int> of_reshape = graph.node(found->reshape).host_nodes;
    folded.inputs[0] = Reshaped(graph, id, source, found->unpadded, of_reshape);
  }
  const auto is_alone = [&](NodeId reader, ValueId v) { return graph.SingleUse(v) == reader; };
  const NodeId of_pad = found->reshape == kNone ? id : found->reshape;
  if (is_alone(id, graph.node(id).inputs[0]) && is_alone(of_pad, padded)) {
    folded.host_nodes = host_nodes;
  }
  // Where nobody else reads what the padding gives, it goes with the dead nodes.
  graph.Replace(id, std::move(folded));
  return true;
}

}  // namespace fuselite::fusion
