// A layer of one row takes the time of reading its weights: those that the model has as small
// integers or halves stay as they are. So do the rows of embeddings, of which a run reads a few.
#include <algorithm>

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
  const bool looks_up = Is(graph, id, "EMBEDDING_LOOKUP");
  if (!looks_up && !Is(graph, id, "FULLY_CONNECTED")) return false;
  const ValueId floats = graph.node(id).inputs[1];
  const NodeId dequantize = ProducerIs(graph, floats, "DEQUANTIZE");
  if (dequantize == kNone || graph.value(floats).info.elements() < kWorthReading) return false;
  Node node = graph.node(id);
  node.inputs[1] = graph.node(dequantize).inputs[0];
  const TensorInfo& small = graph.value(node.inputs[1]).info;
  const auto& zeros = small.quantization.zero_points;
  if (!small.constant() || std::ranges::any_of(zeros, [](int32_t zero) { return zero != 0; })) {
    return false;
  }
  if (!looks_up) node.op = kernels::FindOperator("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED");
  const std::vector<int> hosts = MergeHostNodes(graph, {dequantize, id});
  node.host_nodes = hosts;
  const kernels::OpDescription before = graph.Describe(id);
  const auto accepts = [&](const auto& op) {
    return looks_up ? context.AcceptsInsteadOf(before, op) : context.AcceptsComposite(op);
  };
  if (!ReplaceIf(graph, id, std::move(node), accepts)) return false;
  // It goes at once: else floats would be made for nobody.
  if (graph.consumers(floats).empty() && !graph.value(floats).observed) graph.Remove(dequantize);
  context.Record("keep weights small", hosts);
  return true;
}

}  // namespace fuselite::fusion
