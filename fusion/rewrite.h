// Rewrites: small functions that match a few nodes, make sure that a kernel computes what would
// take their place, and replace them. fusion/passes.cc lists them in their order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/graph/graph.h"
#include "fusion/planner.h"

namespace fuselite::fusion {

// A replacement that was made.
struct RewriteRecord {
  std::string what;              // "fold padding into CONV_2D"
  std::vector<int> host_nodes;   // that it concerned, in order
  std::string ToString() const;  // "fold padding into CONV_2D: nodes 3, 4"
};

// What a rewrite may ask and must tell.
class RewriteContext {
 public:
  // `log` receives each replacement; null: nobody asks.
  RewriteContext(Planner& planner, std::vector<RewriteRecord>* log)
      : planner_(planner), log_(log) {}

  // Whether some kernel computes `op`, and makes of it the shape that its outputs[0] has.
  bool Accepts(const kernels::OpDescription& op) { return Select(op) != nullptr; }
  // As Accepts(), and the kernel is at least as good as the one that computes `before`, which is of
  // the same operator: what a fast kernel refuses is not fused at the price of the reference.
  // If so, the choice for `before` is released, as the caller replaces it.
  bool AcceptsInsteadOf(const kernels::OpDescription& before, const kernels::OpDescription& after);
  // As Accepts(), for an `op` of another operator than those that it replaces: a kernel other than
  // the reference computes it, or the reference is all that its operator has. `heaviest`, if any,
  // is the replaced operation that does most of the work: where the JIT computes that, it has to
  // compute `op`, too.
  bool AcceptsComposite(const kernels::OpDescription& op,
                        const kernels::OpDescription* heaviest = nullptr);

  // What kernels may be made of.
  Isa isa() const { return planner_.context().isa; }
  kernels::Precision precision() const { return planner_.context().precision; }

  // The kernel that computes an operation of the graph.
  const Choice& Choose(const kernels::OpDescription& op) { return planner_.Choose(op); }

  // Whether the budget allows constants like these; what it refuses is left to Lower(), which says
  // so.
  bool Allows(std::span<const TensorInfo> constants) const {
    return planner_.budget().CheckMemory(constants).ok();
  }

  // Notes for the report that `what` changed these nodes, in any order.
  void Record(std::string_view what, const std::vector<int>& host_nodes);

 private:
  // Null where the shape rule or every candidate refuses.
  const Choice* Select(const kernels::OpDescription& op);

  Planner& planner_;
  std::vector<RewriteRecord>* log_;
};

// Looks at one live node as the last of the pattern that it knows; true: the graph was changed.
using RewriteFunction = bool (*)(Graph& graph, NodeId node, RewriteContext& context);

// All of them, in the order in which they run.
std::span<const RewriteFunction> AllRewrites();

// Runs all rewrites, round after round, until a round changes nothing; at most kMaxRounds times
// (passes.cc).
void RunRewrites(Graph& graph, RewriteContext& context);

// Runs one over the nodes in their order; the number of changes. Tests call it.
int RunRewrite(RewriteFunction rewrite, Graph& graph, RewriteContext& context);

// The host's nodes of several nodes, in order, each once.
std::vector<int> MergeHostNodes(const Graph& graph, std::span<const NodeId> nodes);
inline std::vector<int> MergeHostNodes(const Graph& graph, std::initializer_list<NodeId> nodes) {
  return MergeHostNodes(graph, std::span(nodes.begin(), nodes.size()));
}

}  // namespace fuselite::fusion
