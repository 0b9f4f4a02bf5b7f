// A layer of one row takes the time of reading its weights: those that the model has as small
// integers or halves stay as they are.
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/weight_only/weight_only.h"

namespace fuselite::fusion {
namespace {

// As float32 they would fill the second cache; emitted code reads less from there as fast.
constexpr int64_t kWorthReading = 1 << 18;

}  // namespace

bool KeepWeightsSmall(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FULLY_CONNECTED")) return false;
  Node node = graph.node(id);
  const NodeId dequantize = ProducerIs(graph, node.inputs[1], "DEQUANTIZE");
  if (dequantize == kNone || graph.value(node.inputs[1]).info.elements() < kWorthReading) {
    return false;
  }
  node.inputs[1] = graph.node(dequantize).inputs[0];
  node.op = kernels::FindOperator("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED");
  if (!graph.value(node.inputs[1]).info.constant() || node.op == nullptr) return false;
  const ValueId floats = graph.node(id).inputs[1];
  const std::vector<int> hosts = MergeHostNodes(graph, {dequantize, id});
  node.host_nodes = hosts;
  const auto accepts = [&](const auto& op) { return context.AcceptsComposite(op); };
  if (!ReplaceIf(graph, id, std::move(node), accepts)) return false;
  // At once: else floats would be made for nobody.
  if (graph.consumers(floats).empty() && !graph.value(floats).observed) graph.Remove(dequantize);
  context.Record("keep weights small", hosts);
  return true;
}

}  // namespace fuselite::fusion
