// The classifier at a network's end: a single row by megabytes of weights. Packing these takes as
// long as hundreds of runs gain by it, and their copy is memory.
#include "fusion/graph/cost.h"
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::fusion {
namespace {

// Packed, 5 MB in pages of 4 KiB take 160 us a run instead of 170, but 3 ms and as much memory at
// the opening (MobileNetV2, a Xeon). A row by weights from memory takes some ten times as long as
// as many multiply-adds of many rows: at a hundredth of them, the graph takes 0.5% longer.
constexpr int64_t kLeastBytes = 1 << 20;
constexpr double kGraphCosts = 100;

// Whether the model itself holds them: constants that were made are freed when they are packed.
bool AreLargeOfModel(const Value& weights) {
  const TensorInfo& info = weights.info;
  return info.type == DataType::kFloat32 && weights.host_constant() && info.bytes() >= kLeastBytes;
}

}  // namespace

bool ReadWeightsInPlace(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FULLY_CONNECTED")) return false;
  if (context.precision() == kernels::Precision::kFast) return false;  // packs halves
  const Node& node = graph.node(id);
  const Value& weights = graph.value(node.inputs[1]);
  const Shape& output = graph.value(node.outputs[0]).info.shape;
  if (!AreLargeOfModel(weights) || output.elements() != weights.info.shape[0]) return false;
  if (NodeCost(graph, id) * kGraphCosts > GraphCost(graph)) return false;
  Node unpacked = node;
  unpacked.params.as<kernels::FullyConnectedParams>().unpacked_weights = true;
  const kernels::OpDescription after = graph.Describe(unpacked);
  if (!kernels::ReadsUnpacked(after) || !context.AcceptsComposite(after)) return false;
  context.Record("read weights where they lie", node.host_nodes);
  graph.Replace(id, std::move(unpacked));
  return true;
}

}  // namespace fuselite::fusion
