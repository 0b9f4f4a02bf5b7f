#include "fusion/cost.h"
#include "fusion/match.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

bool IsReshape(const Graph& graph, NodeId id) {
  return id != kNone && graph.alive(id) && graph.node(id).op->reshapes;
}

// A shape tensor for RESHAPE: its parameter may not match the merged node's.
ValueId ShapeConstant(Graph& graph, const Shape& shape) {
  const std::span<const int32_t> dims = shape.dims();
  TensorInfo info;
  info.type = DataType::kInt32;
  info.shape = Shape({shape.rank()});
  return graph.AddConstant(info, std::as_bytes(dims), "shape");
}

}  // namespace

bool MergeReshapes(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsReshape(graph, id)) return false;
  const ValueId middle = graph.node(id).inputs[0];
  const NodeId first = graph.producer(middle);
  // State is to be read where the first one stands.
  if (!IsReshape(graph, first) || graph.value(graph.node(first).inputs[0]).variable) return false;
  const kernels::OperatorDef* reshape = kernels::FindOperator("RESHAPE");
  if (!reshape) return false;
  Node merged = graph.node(id);
  merged.op = reshape;
  merged.version = 1;
  merged.params = kernels::Params();
  kernels::SetDefaults(reshape->fields, merged.params.data());
  const ValueId out = merged.outputs[0];
  merged.inputs = {graph.node(first).inputs[0], ShapeConstant(graph, graph.value(out).info.shape)};
  const bool own = graph.SingleConsumer(middle) == id;
  merged.host_nodes = own ? MergeHostNodes(graph, {first, id}) : graph.node(id).host_nodes;
  context.Record("merge reshapes", MergeHostNodes(graph, {first, id}));
  graph.Replace(id, std::move(merged));
  if (own) graph.Remove(first);
  return true;
}

}  // namespace fuselite::fusion
