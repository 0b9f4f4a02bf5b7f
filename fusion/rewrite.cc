#include "fusion/rewrite.h"

#include "fusion/match.h"
#include "runtime/status_join.h"

namespace fuselite::fusion {

RewriteContext::RewriteContext(const kernels::BuildContext& context, bool jit,
                               std::vector<RewriteRecord>* log)
    : context_(context), jit_(jit), log_(log) {
  context_.judging = true;
}

std::optional<Selection> RewriteContext::Select(const kernels::OpDescription& op) const {
  kernels::OpDescription inferred = op;
  if (!kernels::Infer(inferred).ok()) return std::nullopt;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (inferred.outputs[i].shape != op.outputs[i].shape ||
        inferred.outputs[i].type != op.outputs[i].type) {
      return std::nullopt;
    }
  }
  return JudgeSelection(op, context_, jit_);
}

bool RewriteContext::AcceptsInsteadOf(const kernels::OpDescription& before,
                                      const kernels::OpDescription& after) const {
  const std::optional<Selection> now = JudgeSelection(before, context_, jit_);
  const std::optional<Selection> then = Select(after);
  return now && then && then->rank <= now->rank;
}

bool RewriteContext::AcceptsComposite(const kernels::OpDescription& op,
                                      const kernels::OpDescription* heaviest) const {
  const std::optional<Selection> selected = Select(op);
  if (!selected || selected->reference) return false;
  if (!heaviest || selected->emitted) return true;
  const std::optional<Selection> replaced = JudgeSelection(*heaviest, context_, jit_);
  return !replaced || !replaced->emitted;
}

void RewriteContext::Record(std::string_view what, const std::vector<int>& host_nodes) {
  if (log_) log_->push_back({std::string(what), host_nodes});
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
