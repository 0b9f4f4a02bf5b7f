#include <algorithm>
#include <set>

#include "fusion/plan/storage.h"
#include "kernels/placement.h"

namespace fuselite::fusion {
namespace {

// Whether the kernels of all nodes whose operands lie elsewhere in `after` than in `before` take
// them there, and are as good.
bool KernelsAgree(const Graph& graph, const StoragePlan& before, const StoragePlan& after,
                  const RewriteContext& context) {
  const auto moved = [&](ValueId v) {
    return v != kNone && before.of(v).pitch != after.of(v).pitch;
  };
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (after.silent(id)) continue;
    if (!std::ranges::any_of(node.inputs, moved) && !std::ranges::any_of(node.outputs, moved)) {
      continue;
    }
    if (!context.AcceptsInsteadOf(before.Describe(id), after.Describe(id))) return false;
  }
  return true;
}

bool Distinct(const std::vector<ValueId>& values) {
  return std::set<ValueId>(values.begin(), values.end()).size() == values.size();
}

// Puts the parts where the operator's placement wants them.
bool PlaceParts(const Graph& graph, NodeId id, const kernels::Placement& placement,
                StoragePlan& plan) {
  const Node& node = graph.node(id);
  const std::vector<ValueId>& parts = placement.parts_are_inputs ? node.inputs : node.outputs;
  const std::vector<ValueId>& wholes = placement.parts_are_inputs ? node.outputs : node.inputs;
  if (placement.parts_are_inputs && !Distinct(parts)) return false;
  for (const kernels::PlacedPart& part : placement.parts) {
    const ValueId v = parts[part.operand];
    const TensorInfo& info = graph.value(v).info;
    const int64_t pitch =
        part.row_pitch ? part.row_pitch : (info.shape.rank() ? info.shape.dim(-1) : 1);
    if (!plan.Place(v, wholes[placement.whole], static_cast<size_t>(part.byte_offset), pitch)) {
      return false;
    }
  }
  return true;
}

// A reshape whose output is bound from outside: the input in the output's memory.
bool PlaceBackwards(const Graph& graph, NodeId id, const kernels::Placement& placement,
                    StoragePlan& plan) {
  if (placement.parts_are_inputs || placement.parts.size() != 1) return false;
  const ValueId in = graph.node(id).inputs[placement.whole], out = graph.node(id).outputs[0];
  if (graph.value(in).info.bytes() != graph.value(out).info.bytes()) return false;
  return plan.Place(in, out, 0, plan.of(in).pitch);
}

// A node that needs no step when its operands are placed as it would move them.
bool PlaceNode(const Graph& graph, NodeId id, const RewriteContext& context, StoragePlan& plan) {
  if (!graph.node(id).tail.empty()) return false;
  const Result<kernels::Placement> placement = kernels::FindPlacement(plan.Describe(id));
  if (!placement.ok()) return false;
  for (const auto place : {PlaceParts, PlaceBackwards}) {
    StoragePlan placed = plan;
    if (!place(graph, id, *placement, placed)) continue;
    placed.Silence(id);
    if (!KernelsAgree(graph, plan, placed, context)) continue;
    plan = std::move(placed);
    return true;
  }
  return false;
}

}  // namespace

StoragePlan PlanStorage(const Graph& graph, RewriteContext& context) {
  StoragePlan plan(graph);
  for (NodeId id : graph.order()) {
    if (PlaceNode(graph, id, context, plan)) {
      context.Record(internal::Join("place ", graph.node(id).op->name, " in memory"),
                     graph.node(id).host_nodes);
    }
  }
  return plan;
}

}  // namespace fuselite::fusion
