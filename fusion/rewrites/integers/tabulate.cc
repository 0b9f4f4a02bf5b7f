#include "fusion/graph/region.h"
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

constexpr int32_t kCodes = 256;
// Regions are a few nodes: SiLU has two, hard-swish from its parts four.
constexpr size_t kMaxNodes = 32;

// The largest region whose root is 8-bit; its root is kNone where there is none.
Region LargestOfBytes(const Graph& graph, NodeId last) {
  Region best;
  RegionFinder finder(graph, last);
  while (finder.Next(kMaxNodes)) {
    if (IsByte(graph.value(finder.region().root).info)) best = finder.region();
  }
  return best;
}

// Entry uint8(x) is uint8(y).
Result<std::vector<uint8_t>> Tabulate(const Graph& graph, const Region& region) {
  std::vector<uint8_t> codes(kCodes);
  for (int32_t i = 0; i < kCodes; ++i) codes[i] = static_cast<uint8_t>(i);
  FUSELITE_ASSIGN_OR_RETURN(const Value result,
                            EvaluateRegion(graph, region, std::as_bytes(std::span(codes)), kCodes));
  const auto* bytes = static_cast<const uint8_t*>(result.info.data);
  return std::vector<uint8_t>(bytes, bytes + kCodes);
}

// Alone, an operator of one 8-bit value is a table already.
bool IsTable(const Graph& graph, const Region& region) {
  const Node& node = graph.node(region.nodes[0]);
  return region.nodes.size() == 1 && node.inputs.size() == 1 && node.op->name != "QUANTIZE";
}

}  // namespace

bool TabulateBytes(Graph& graph, NodeId id, RewriteContext& context) {
  if (!IsPointwise(graph, id)) return false;
  const TensorInfo& output = graph.value(graph.node(id).outputs[0]).info;
  if (!IsByte(output) || output.quantization.per_channel()) return false;
  Region region = LargestOfBytes(graph, id);
  if (region.root == kNone || IsTable(graph, region) ||
      graph.value(region.root).info.type != output.type) {
    return false;
  }
  SortRegion(graph, &region);
  Result<std::vector<uint8_t>> table = Tabulate(graph, region);
  if (!table.ok()) return false;
  kernels::TailStage stage;
  stage.kind = kernels::TailStage::Kind::kLookup;
  stage.table = std::move(*table);
  return ReplacePattern(graph, id, DyingNodes(graph, region),
                        MakeChain(graph, region.root, {std::move(stage)}),
                        "tabulate a function of 8 bits", context);
}

}  // namespace fuselite::fusion
