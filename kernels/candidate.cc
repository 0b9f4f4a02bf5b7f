#include "kernels/candidate.h"

#include <algorithm>
#include <string>

#include "kernels/make_kernel.h"
#include "kernels/operator.h"
#include "kernels/widened.h"
#include "runtime/support/caught.h"

namespace fuselite::kernels {
namespace {

// Constants of a thread that the L2 of current cores, 1 MiB or more, keeps nearly all of. On a Zen
// 5 rows of weights of 1.05 MB take 5 to 8% longer where they are fetched ahead, those of a network
// of 2.1 MB take 12% less.
constexpr int64_t kStayInL2 = 1280 << 10;

// Whether there is nothing to do: outputs without an element, no state, and no index to check.
// Other dimensions may be of any size, which kernels would go over row by row, or compute lengths
// from.
bool GivesNothing(const OpDescription& op) {
  return !op.outputs.empty() && op.op->state_inputs.empty() &&
         std::ranges::all_of(op.outputs,
                             [](const TensorInfo& output) { return output.elements() == 0; }) &&
         !op.op->checks_indices;
}

KernelPlan NothingToDo(std::string_view name) {
  return MakeKernel(std::string(name), {.units = 0}, [](const KernelArgs&, int64_t, int64_t) {});
}

}  // namespace

bool PlanContext::FetchesAhead(int64_t weights_bytes) const {
  const bool stay_in_l2 = std::max(weights_bytes, constant_bytes) <= kStayInL2 * threads;
  return !stay_in_l2 && !isa.has(Trait::kFollowsStreams);
}

Result<PackedWeights> BuildContext::Pack(const PackRequest& request,
                                         const std::function<void(std::byte*)>& pack) const {
  if (store == nullptr) return Internal("weights are packed where a kernel is only planned");
  return store->GetOrPack(request, pack);
}

Result<KernelPlan::KernelPtr> KernelPlan::Build(const OpDescription& op,
                                                const BuildContext& context) const {
  if (!finish_) return draft_;
  return Guarded("building the kernel",
                 [&]() -> Result<KernelPtr> { return finish_(op, context); });
}

Result<KernelPlan> Candidate::Plan(const OpDescription& op, const PlanContext& context) const {
  if (!takes_bfloat16_ && HasBFloat16Values(op)) {
    if (this == &op.op->candidates.back()) return PlanWidened(*this, op, context);
    return Unsupported("does not take values of bfloat16");
  }
  return Guarded("planning the kernel", [&]() -> Result<KernelPlan> {
    FUSELITE_ASSIGN_OR_RETURN(KernelPlan plan,
                              plan_ != nullptr ? plan_(op, context) : OwnPlan(build_(op, context)));
    return GivesNothing(op) ? NothingToDo(plan.kernel().name()) : std::move(plan);
  });
}

Result<std::shared_ptr<const Kernel>> Candidate::Build(const OpDescription& op,
                                                       const BuildContext& context) const {
  FUSELITE_ASSIGN_OR_RETURN(const KernelPlan plan, Plan(op, context));
  return plan.Build(op, context);
}

}  // namespace fuselite::kernels
