// SELECT_V2(condition, scores, low) before SOFTMAX, as JAX masks scores -> scores + SELECT_V2(
// condition, 0, low): a mask of the condition's shape, made ahead where that is constant, which a
// product's tail adds, and attention. A masked score still is so low that its exponential is 0; a
// row of which all is masked has equal weights while its scores are below the last place of `low`,
// 64 for -1e9.
#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/attention/attention.h"

namespace fuselite::fusion {
namespace {

// The input of a SELECT_V2 that is a constant low enough; 0: none.
int LowInput(const Graph& graph, const Node& node) {
  for (const int i : {1, 2}) {
    const std::optional<float> value = ScalarConstant(graph, node.inputs[i]);
    if (value && *value <= kernels::kHiddenScore) return i;
  }
  return 0;
}

}  // namespace

bool MaskByAddition(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsBare(graph, id, "SELECT_V2")) return false;
  Node select = graph.node(id);
  const ValueId out = select.outputs[0];
  const int low = LowInput(graph, select);
  const NodeId reader = graph.SingleUse(AfterRearranging(graph, out));
  if (low == 0 || !IsBare(graph, reader, "SOFTMAX")) return false;
  const ValueId scores = select.inputs[3 - low];
  const Shape condition = graph.value(select.inputs[0]).info.shape;
  const TensorInfo& info = graph.value(scores).info;
  if (info.shape != graph.value(out).info.shape || info.constant()) return false;

  const float zero = 0;
  select.inputs[3 - low] = graph.AddConstant({.type = DataType::kFloat32, .shape = Shape()},
                                             std::as_bytes(std::span(&zero, 1)), "zero");
  const ValueId mask = AddShaped(graph, out, condition);
  select.outputs = {mask};
  Node add = MakeNode("ADD", {scores, mask});
  add.outputs = {out};
  add.host_nodes = select.host_nodes;
  if (!context.AcceptsComposite(graph.Describe(add))) return false;
  context.Record("mask by addition", select.host_nodes);
  graph.InsertBefore(id, std::move(select));
  graph.Replace(id, std::move(add));
  return true;
}

}  // namespace fuselite::fusion
