#include <algorithm>

#include "fusion/plan/storage.h"

namespace fuselite::fusion {
namespace {

// The last node, counted in the order, that reads anything in the memory of each root. Behind one
// without a step comes who reads what it gives.
std::vector<int> LastReaders(const Graph& graph, const StoragePlan& plan) {
  std::vector<int> last(graph.value_count(), -1);
  int step = 0;
  for (NodeId id : graph.order()) {
    for (ValueId v : graph.node(id).inputs) {
      if (v != kNone) last[plan.of(v).root] = step;
    }
    ++step;
  }
  return last;
}

// Whether the node reads anything else in the operand's memory.
bool SharesMemory(const Node& node, ValueId in, const StoragePlan& plan) {
  const auto inside = [&](ValueId v) { return v != kNone && plan.of(v).root == plan.of(in).root; };
  return std::ranges::count_if(node.inputs, inside) > 1;
}

// Precondition: elements lie on elements, as Kernel::in_place_input() has it.
bool WriteOver(ValueId in, ValueId out, StoragePlan& plan) {
  // A bound output may also be where the input was made.
  const int64_t pitch = plan.of(in).pitch;
  const bool placed = plan.Place(out, in, 0, pitch) || plan.Place(in, out, 0, pitch);
  plan.Commit();
  return placed;
}

}  // namespace

void PlanInPlace(const Graph& graph, RewriteContext& context, StoragePlan& plan) {
  std::vector<int> last = LastReaders(graph, plan);
  int step = -1;
  for (NodeId id : graph.order()) {
    ++step;
    const Node& node = graph.node(id);
    if (plan.silent(id) || node.outputs.size() != 1) continue;
    const Choice& choice = context.Choose(plan.Describe(id));
    const int input = choice.status.ok() ? choice.plan->kernel().in_place_input() : -1;
    if (input < 0) continue;
    const ValueId in = node.inputs[input];
    if (!IsInternal(graph.value(plan.of(in).root)) || last[plan.of(in).root] != step ||
        SharesMemory(node, in, plan)) {
      continue;
    }
    // Everything in the memory of the two is now in that of one, and its last reader is known.
    const int last_of_output = last[plan.of(node.outputs[0]).root];
    if (WriteOver(in, node.outputs[0], plan))
      last[plan.of(in).root] = std::max(step, last_of_output);
  }
}

}  // namespace fuselite::fusion
