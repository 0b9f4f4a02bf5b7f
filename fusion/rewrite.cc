#include "fusion/rewrite.h"

#include "fusion/match.h"
#include "runtime/support/status_join.h"

namespace fuselite::fusion {

const Choice* RewriteContext::Select(const kernels::OpDescription& op) {
  kernels::OpDescription inferred = op;
  if (!kernels::InferRewritten(inferred).ok()) return nullptr;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (inferred.outputs[i].shape != op.outputs[i].shape ||
        inferred.outputs[i].type != op.outputs[i].type) {
      return nullptr;
    }
  }
  const Choice& choice = planner_.Choose(op);
  return choice.status.ok() ? &choice : nullptr;
}

bool RewriteContext::AcceptsInsteadOf(const kernels::OpDescription& before,
                                      const kernels::OpDescription& after) {
  const Choice& now = planner_.Choose(before);
  const Choice* then = Select(after);
  if (then == nullptr || then->rank > now.rank) return false;
  planner_.Release(now);
  return true;
}

bool RewriteContext::AcceptsComposite(const kernels::OpDescription& op,
                                      const kernels::OpDescription* heaviest) {
  const Choice* chosen = Select(op);
  if (chosen == nullptr || chosen->reference) return false;
  if (heaviest == nullptr || chosen->emitted) return true;
  return !planner_.Choose(*heaviest).emitted;
}

void RewriteContext::Record(std::string_view what, const std::vector<int>& host_nodes) {
  if (log_ == nullptr) return;
  log_->push_back({std::string(what), host_nodes});
  SortUnique(&log_->back().host_nodes);
}

std::string RewriteRecord::ToString() const {
  std::string line = internal::Join(what, host_nodes.size() == 1 ? ": node" : ": nodes");
  for (size_t i = 0; i < host_nodes.size(); ++i) {
    line += internal::Join(i ? ", " : " ", host_nodes[i]);
  }
  return line;
}

std::vector<int> MergeHostNodes(const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<int> merged;
  for (NodeId id : nodes) {
    const std::vector<int>& own = graph.node(id).host_nodes;
    merged.insert(merged.end(), own.begin(), own.end());
  }
  SortUnique(&merged);
  return merged;
}

}  // namespace fuselite::fusion
