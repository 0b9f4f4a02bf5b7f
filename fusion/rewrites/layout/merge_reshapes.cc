#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

bool IsReshape(const Graph& graph, NodeId id) { return id != kNone && graph.node(id).op->reshapes; }

}  // namespace

bool MergeReshapes(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsReshape(graph, id)) return false;
  const ValueId middle = graph.node(id).inputs[0];
  const NodeId first = graph.producer(middle);
  // State is to be read where the first one stands.
  if (!IsReshape(graph, first)) return false;
  Node merged = graph.node(id);
  merged.op = kernels::FindOperator("RESHAPE");
  merged.version = 1;
  merged.params = kernels::Params();
  kernels::SetDefaults(merged.op->fields, merged.params.data());
  const ValueId out = merged.outputs[0];
  // A shape of its own: that of the parameters may not be the merged node's.
  const Shape shape = graph.value(out).info.shape;
  merged.inputs = {graph.node(first).inputs[0], AddInts(graph, shape.dims(), "shape")};
  const bool own = graph.SingleConsumer(middle) == id;
  merged.host_nodes = own ? MergeHostNodes(graph, {first, id}) : graph.node(id).host_nodes;
  context.Record("merge reshapes", MergeHostNodes(graph, {first, id}));
  graph.Replace(id, std::move(merged));
  if (own) graph.Remove(first);
  return true;
}

}  // namespace fuselite::fusion
