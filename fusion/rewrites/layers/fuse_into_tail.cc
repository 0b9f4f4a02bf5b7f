#include <algorithm>

#include "fusion/match.h"
#include "fusion/quantized_stages.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "fusion/stages.h"

namespace fuselite::fusion {
namespace {

// A sum of bytes behind a table is in no emitted tail: it would be a pass over what was stored, in
// whole numbers of 32 bits, which take longer than those of the operator alone.
bool SumsBehindTable(const Node& owner, const Stages& stages) {
  const auto is_table = [](const kernels::TailStage& stage) {
    return stage.kind == kernels::TailStage::Kind::kLookup;
  };
  return !stages.operands.empty() && std::ranges::any_of(owner.tail.stages, is_table);
}

bool FuseThrough(Graph& graph, NodeId id, NodeId owner, ValueId flowing, RewriteContext& context) {
  std::optional<Stages> stages = AsStages(graph, id, flowing);
  const bool quantized = !stages;
  if (quantized) {
    // Said before the stages are made, of which one may be a table.
    if (!graph.node(owner).op->product_inputs) return false;
    stages = AsQuantizedStages(graph, id, flowing);
    if (!stages || SumsBehindTable(graph.node(owner), *stages)) return false;
  }
  Node fused = graph.node(owner);
  if (quantized && !RequantizeInTail(graph, owner, &fused)) return false;
  if (!AppendStages(*stages, &fused)) return false;
  const kernels::OpDescription before = graph.Describe(owner);
  fused.outputs = graph.node(id).outputs;
  fused.host_nodes = MergeHostNodes(graph, {owner, id});
  // The fused node stands where the elementwise one did: its operands are made by then.
  const auto accepts = [&](const auto& op) { return context.AcceptsInsteadOf(before, op); };
  const std::string_view elementwise = graph.node(id).op->name;
  if (!ReplaceIf(graph, id, std::move(fused), accepts)) return false;
  context.Record(
      internal::Join("fuse ", elementwise, " into the tail of ", graph.node(id).op->name),
      graph.node(id).host_nodes);
  graph.Remove(owner);
  return true;
}

}  // namespace

bool FuseIntoTail(Graph& graph, NodeId id, RewriteContext& context) {
  // Two operands could take it: the one made last does, since the other has to exist by then.
  std::vector<std::pair<NodeId, ValueId>> owners;
  for (ValueId v : graph.node(id).inputs) {
    if (const NodeId owner = TailOwnerOf(graph, id, v); owner != kNone)
      owners.emplace_back(owner, v);
  }
  std::ranges::sort(owners,
                    [&](const auto& a, const auto& b) { return graph.Precedes(b.first, a.first); });
  for (const auto& [owner, flowing] : owners) {
    if (FuseThrough(graph, id, owner, flowing, context)) return true;
  }
  return false;
}

}  // namespace fuselite::fusion
