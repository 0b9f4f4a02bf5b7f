// The choice of a kernel: the JIT's candidates, then the operator's own, the reference last.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/operator.h"
#include "runtime/memory/budget.h"
#include "runtime/weights/hash.h"

namespace fuselite::fusion {

// A candidate that was asked and refused.
struct Refusal {
  std::string candidate;  // "jit"
  std::string reason;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// The first candidate of an operation's lists that accepts it.
struct Choice {
  Hash128 key;  // of the operation, in the planner
  // Fails with the budget's refusal, or with the last candidate's on what kernels::Infer would not
  // accept: the reference takes everything else. Then the rest means nothing.
  Status status;
  bool beyond_budget = false;
  std::optional<kernels::KernelPlan> plan;
  std::string_view candidate;
  int rank = 0;            // its place in the lists, 0 the best one; those of one operator compare
  bool emitted = false;    // by the JIT
  bool reference = false;  // the last resort of an operator that has others
  // Where the JIT accepts, whose candidates refuse each other's types, only why what precision=fast
  // asks for is not done.
  std::vector<Refusal> refusals;
};

// Plans kernels, and remembers what it planned: who asks for the same operation again gets the same
// plan. A graph is compiled with one planner, so that an operation is planned once for the verdict
// on its node, the rewrites that ask about it, its place in memory, and its step.
class Planner {
 public:
  // With `jit`, emitted kernels come first. Where the system refuses executable memory none is
  // planned, and its reason is theirs. What gives more than `budget` allows is not planned, since
  // kernels may hold tables as long as an output's sides.
  Planner(const kernels::PlanContext& context, bool jit, const Budget& budget);

  // The choice for an operation that kernels::InferRewritten accepts. It stays where it is as long
  // as the planner, or until it is released or the constants that `op` names go.
  const Choice& Choose(const kernels::OpDescription& op);
  // Forgets a choice, once its plan was built or replaced: the plans of EfficientNet int8's 250
  // nodes hold 1.5 MB of scales and panels. `choice` ends here; who asks again gets another.
  void Release(const Choice& choice);

  // Calls `build`, which builds kernels and runs none: their code becomes executable at its end.
  Status BuildTogether(const std::function<Status()>& build) const;

  const kernels::PlanContext& context() const { return context_; }
  bool jit() const { return jit_; }
  const Budget& budget() const { return budget_; }

 private:
  kernels::PlanContext context_;
  bool jit_;
  Budget budget_;
  Status emission_;  // why nothing can be emitted here; OK where it can, or need not
  struct Low {
    size_t operator()(const Hash128& hash) const { return hash.low; }
  };
  std::unordered_map<Hash128, Choice, Low> choices_;  // by the operation's description
};

}  // namespace fuselite::fusion
