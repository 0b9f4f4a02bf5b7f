#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/pool/pool.h"

namespace fuselite::fusion {
namespace {

// The padding of rows and columns; nullopt where another dimension is padded, or one is cut.
std::optional<kernels::ExtraPadding> SpatialPadding(const Graph& graph, const Node& pad) {
  const auto p = IntConstant(graph, pad.inputs[1]);
  if (!p || p->size() != 8) return std::nullopt;
  for (int32_t x : *p) {
    if (x < 0) return std::nullopt;
  }
  if ((*p)[0] || (*p)[1] || (*p)[6] || (*p)[7]) return std::nullopt;
  return kernels::ExtraPadding{
      .top = (*p)[2], .left = (*p)[4], .bottom = (*p)[3], .right = (*p)[5]};
}

// PAD fills with zero, with the zero point where quantized: what a convolution takes beyond its
// input. PADV2 says what.
bool FillsWithZero(const Graph& graph, const Node& pad) {
  if (pad.op->name == "PAD") return true;
  return pad.op->name == "PADV2" && pad.inputs.size() == 3 &&
         ScalarConstant(graph, pad.inputs[2]) == 0.0f;
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

// A maximum leaves its padding out, a PAD before it counts as zeros: the same where nothing is
// below zero and no window is all padding.
bool PadsLikeZeros(const Graph& graph, const Node& pool, const Node& pad) {
  if (!IsNonNegative(graph, pad.inputs[0])) return false;
  kernels::OpDescription op;
  op.op = pool.op;
  op.params = pool.params;
  op.inputs = {graph.value(pad.inputs[0]).info};
  const auto shape = kernels::ResolvePool(op);
  return shape.ok() && EveryWindowHasATap(shape->window.y) && EveryWindowHasATap(shape->window.x);
}

}  // namespace

bool FoldPadding(Graph& graph, NodeId id, RewriteContext& context) {
  if (graph.node(id).op->extra_padding == nullptr) return false;
  const NodeId pad_id = graph.producer(graph.node(id).inputs[0]);
  if (pad_id == kNone) return false;
  const Node& pad = graph.node(pad_id);
  if (!FillsWithZero(graph, pad)) return false;
  const std::optional<kernels::ExtraPadding> padding = SpatialPadding(graph, pad);
  if (!padding) return false;
  if (graph.value(pad.inputs[0]).info.quantization !=
      graph.value(pad.outputs[0]).info.quantization) {
    return false;
  }
  Node folded = graph.node(id);
  kernels::ExtraPadding& extra = folded.op->extra_padding(folded.params);
  // Extra padding is outside of the convolution's own, so a second PAD adds to the first.
  extra.top += padding->top;
  extra.left += padding->left;
  extra.bottom += padding->bottom;
  extra.right += padding->right;
  if (folded.op->name == "MAX_POOL_2D" && !PadsLikeZeros(graph, folded, pad)) return false;
  const kernels::OpDescription before = graph.Describe(id);
  folded.inputs[0] = pad.inputs[0];
  const bool own = graph.SingleUse(pad.outputs[0]) == id;
  if (own) folded.host_nodes = MergeHostNodes(graph, {pad_id, id});
  const auto accepts = [&](const auto& op) { return context.AcceptsInsteadOf(before, op); };
  if (!ReplaceIf(graph, id, std::move(folded), accepts)) return false;
  context.Record(internal::Join("fold padding into ", graph.node(id).op->name),
                 MergeHostNodes(graph, {pad_id, id}));
  if (own) graph.Remove(pad_id);
  return true;
}

}  // namespace fuselite::fusion
