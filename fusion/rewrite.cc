#include "fusion/rewrite.h"

#include "fusion/match.h"
#include "runtime/status_join.h"

namespace fuselite::fusion {

RewriteContext::RewriteContext(const kernels::BuildContext& context, bool jit,
                               std::vector<std::string>* log)
    : context_(context), jit_(jit), log_(log) {
  context_.judging = true;
}

int RewriteContext::Rank(const kernels::OpDescription& op) const {
  kernels::OpDescription inferred = op;
  if (!kernels::Infer(inferred).ok()) return -1;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (inferred.outputs[i].shape != op.outputs[i].shape ||
        inferred.outputs[i].type != op.outputs[i].type) {
      return -1;
    }
  }
  return JudgeRank(op, context_, jit_);
}

bool RewriteContext::AcceptsInsteadOf(const kernels::OpDescription& before,
                                      const kernels::OpDescription& after) const {
  const int rank = Rank(after);
  return rank >= 0 && rank <= JudgeRank(before, context_, jit_);
}

bool RewriteContext::AcceptsComposite(const kernels::OpDescription& op,
                                      const kernels::OpDescription* heaviest) const {
  const auto candidate_of = [&](const kernels::OpDescription& asked) {
    std::string candidate;
    const bool ok = SelectKernel(asked, context_, jit_, &candidate, nullptr).ok();
    return ok ? candidate : std::string();
  };
  if (Rank(op) < 0) return false;
  const std::string candidate = candidate_of(op);
  if (candidate.empty()) return false;
  if (heaviest && candidate != "jit" && candidate_of(*heaviest) == "jit") return false;
  return candidate != op.op->candidates.back().name || op.op->candidates.size() == 1;
}

void RewriteContext::Record(std::string_view what, const std::vector<int>& host_nodes) {
  if (!log_) return;
  std::string line = internal::Join(what, host_nodes.size() == 1 ? ": node" : ": nodes");
  for (size_t i = 0; i < host_nodes.size(); ++i) {
    line += internal::Join(i ? ", " : " ", host_nodes[i]);
  }
  log_->push_back(std::move(line));
}

std::vector<int> MergeHostNodes(const Graph& graph, std::initializer_list<NodeId> nodes) {
  std::vector<int> merged;
  for (NodeId id : nodes) {
    const std::vector<int>& own = graph.node(id).host_nodes;
    merged.insert(merged.end(), own.begin(), own.end());
  }
  SortUnique(&merged);
  return merged;
}

}  // namespace fuselite::fusion
