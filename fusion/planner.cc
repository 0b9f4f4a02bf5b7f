#include "fusion/planner.h"

#include <algorithm>

#include "fusion/graph/description_hash.h"
#include "kernels/elementwise/spelling.h"
#include "kernels/rows/image_slices.h"

// The one place that knows whether this build has a JIT (see CMakeLists.txt).
#if FUSELITE_JIT
#include "jit/candidates.h"
#include "jit/code/code_pages.h"
#endif

namespace fuselite::fusion {
namespace {

std::span<const kernels::Candidate> JitCandidates([[maybe_unused]] const kernels::OperatorDef& op) {
#if FUSELITE_JIT
  return jit::CandidatesFor(op);
#else
  return {};
#endif
}

Status CheckEmission() {
#if FUSELITE_JIT
  return jit::CheckExecutableMemory();
#else
  return Status();
#endif
}

Status BuildInBatch(const std::function<Status()>& build) {
#if FUSELITE_JIT
  jit::CodeBatch batch;
  FUSELITE_RETURN_IF_ERROR(build());
  return batch.Close();
#else
  return build();
#endif
}

// Whether there is nothing to compute. Such an operation is the reference's, so that no other
// kernel has to divide its work where there is none.
bool HasEmptyOutputs(const kernels::OpDescription& op) {
  return std::ranges::all_of(op.outputs, [](const TensorInfo& o) { return o.elements() == 0; });
}

// Emitters refuse each other's types, which says nothing where one of them accepts; but whoever
// asked for bfloat16, and nobody else, is told why floats are not rounded to it.
void ForgetOtherTypes(const kernels::PlanContext& context, bool emitted,
                      std::vector<Refusal>* refusals) {
  const bool fast = context.precision == kernels::Precision::kFast;
  std::erase_if(*refusals,
                [=](const Refusal& r) { return r.candidate == "jit bf16" ? !fast : emitted; });
}

Choice Ask(const kernels::OpDescription& op, const kernels::PlanContext& context, bool jit,
           const Status& emission) {
  const std::span<const kernels::Candidate> all = JitCandidates(*op.op);
  const bool empty = HasEmptyOutputs(op);
  const bool emits = jit && emission.ok() && !empty;
  const std::span<const kernels::Candidate> emitters = all.first(emits ? all.size() : 0);
  const std::span<const kernels::Candidate> own =
      empty ? op.op->candidates.last(1) : op.op->candidates;
  Choice choice;
  if (!emission.ok() && !all.empty()) choice.refusals.push_back({"jit", emission.message()});
  // Ranks count the JIT's candidates even where it is off, so that they mean the same.
  choice.rank =
      static_cast<int>(all.size() - emitters.size() + op.op->candidates.size() - own.size());
  for (const std::span<const kernels::Candidate> list : {emitters, own}) {
    choice.emitted = list.data() == emitters.data();
    for (const kernels::Candidate& candidate : list) {
      Result<kernels::KernelPlan> plan = candidate.Plan(op, context);
      choice.status = plan.status();
      if (plan.ok()) {
        choice.plan = kernels::InSlices(candidate, op, *std::move(plan), context);
        choice.candidate = candidate.name;
        choice.reference = !choice.emitted && list.size() > 1 && &candidate == &list.back();
        ForgetOtherTypes(context, choice.emitted, &choice.refusals);
        return choice;
      }
      choice.refusals.push_back({std::string(candidate.name), plan.status().message()});
      ++choice.rank;
    }
  }
  choice.status = (choice.status.ok() ? Internal("no candidate") : choice.status).In(op.op->name);
  return choice;
}

// The choice for an elementwise operation, however its shapes are written.
Choice AskInFewestDimensions(const kernels::OpDescription& op, const kernels::PlanContext& context,
                             bool jit, const Status& emission) {
  const auto spelled = op.op->elementwise ? kernels::InFewestDimensions(op) : std::nullopt;
  if (!spelled) return Ask(op, context, jit, emission);
  Choice choice = Ask(*spelled, context, jit, emission);
  if (choice.plan) {
    choice.plan = kernels::KernelPlan(
        choice.plan->draft(), [plan = *choice.plan](const kernels::OpDescription& described,
                                                    const kernels::BuildContext& build) {
          return plan.Build(*kernels::InFewestDimensions(described), build);
        });
  }
  return choice;
}

}  // namespace

Planner::Planner(const kernels::PlanContext& context, bool jit, const Budget& budget)
    : context_(context), jit_(jit), budget_(budget), emission_(jit ? CheckEmission() : Status()) {}

const Choice& Planner::Choose(const kernels::OpDescription& op) {
  const Hash128 key = HashOf(op);
  if (const auto known = choices_.find(key); known != choices_.end()) return known->second;
  Choice choice;
  choice.status = budget_.CheckMemory(op.outputs);
  if (choice.status.ok()) {
    choice = AskInFewestDimensions(op, context_, jit_, emission_);
  } else {
    choice.beyond_budget = true;
  }
  choice.key = key;
  return choices_.emplace(key, std::move(choice)).first->second;
}

Status Planner::BuildTogether(const std::function<Status()>& build) const {
  return emission_.ok() && jit_ ? BuildInBatch(build) : build();
}

void Planner::Release(const Choice& choice) { choices_.erase(Hash128(choice.key)); }

}  // namespace fuselite::fusion
