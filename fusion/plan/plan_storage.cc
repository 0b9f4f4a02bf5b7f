#include <algorithm>

#include "fusion/match.h"
#include "fusion/plan/storage.h"
#include "kernels/movement/placement.h"

namespace fuselite::fusion {
namespace {

// The nodes with a step of their own, other than `id`, that have an operand whose rows moved.
std::vector<NodeId> Concerned(const Graph& graph, NodeId id, const StoragePlan& plan) {
  std::vector<NodeId> nodes;
  for (ValueId v : plan.Repitched()) {
    nodes.push_back(graph.maker(v));
    for (const auto& [reader, inputs] : graph.consumers(v)) nodes.push_back(reader);
  }
  std::erase_if(nodes, [&](NodeId n) { return n == id || plan.silent(n); });
  SortUnique(&nodes);
  return nodes;
}

std::vector<kernels::OpDescription> DescribeAll(const std::vector<NodeId>& nodes,
                                                const StoragePlan& plan) {
  std::vector<kernels::OpDescription> ops;
  ops.reserve(nodes.size());
  for (NodeId id : nodes) ops.push_back(plan.Describe(id));
  return ops;
}

// Whether the kernels take their operands where they lie after a placement, and are as good.
bool KernelsAgree(const std::vector<kernels::OpDescription>& before,
                  const std::vector<kernels::OpDescription>& after, RewriteContext& context) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (!context.AcceptsInsteadOf(before[i], after[i])) return false;
  }
  return true;
}

// Puts the parts where the operator's placement wants them; one that stands twice cannot lie there.
bool PlaceParts(const Graph& graph, NodeId id, const kernels::Placement& placement,
                StoragePlan& plan) {
  const Node& node = graph.node(id);
  const std::vector<ValueId>& parts = placement.parts_are_inputs ? node.inputs : node.outputs;
  const std::vector<ValueId>& wholes = placement.parts_are_inputs ? node.outputs : node.inputs;
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
bool PlaceNode(const Graph& graph, NodeId id, RewriteContext& context, StoragePlan& plan) {
  const Node& node = graph.node(id);
  const auto is_state = [&](ValueId v) { return v != kNone && graph.value(v).variable; };
  // What is read of state must not change with it.
  if (std::ranges::any_of(node.inputs, is_state) || std::ranges::any_of(node.outputs, is_state)) {
    return false;
  }
  if (!node.tail.empty()) return false;
  const Result<kernels::Placement> placement = kernels::FindPlacement(plan.Describe(id));
  if (!placement.ok()) return false;
  for (const auto place : {PlaceParts, PlaceBackwards}) {
    const bool placed = place(graph, id, *placement, plan);
    const std::vector<NodeId> concerned = Concerned(graph, id, plan);
    const std::vector<kernels::OpDescription> after = DescribeAll(concerned, plan);
    plan.Undo();
    if (!placed || !KernelsAgree(DescribeAll(concerned, plan), after, context)) continue;
    place(graph, id, *placement, plan);
    plan.Commit();
    plan.Silence(id);
    return true;
  }
  return false;
}

}  // namespace

StoragePlan PlanStorage(const Graph& graph, RewriteContext& context) {
  StoragePlan plan(graph);
  for (NodeId id : graph.order()) {
    if (PlaceNode(graph, id, context, plan)) {
      context.Record(internal::Join("place ", graph.node(id).name(), " in memory"),
                     graph.node(id).host_nodes);
    }
  }
  return plan;
}

}  // namespace fuselite::fusion
