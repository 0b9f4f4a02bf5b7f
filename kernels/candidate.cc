#include "kernels/candidate.h"

#include <exception>
#include <new>
#include <string>
#include <vector>

namespace fuselite::kernels {
namespace {

template <class T, class Function>
Result<T> Guarded(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return OutOfMemory("not enough memory to build the kernel");
  } catch (const std::exception& e) {
    return Internal(e.what());
  }
}

}  // namespace

Result<PackedWeights> BuildContext::Pack(const PackRequest& request,
                                         const std::function<void(std::byte*)>& pack) const {
  if (store == nullptr) return Internal("weights are packed where a kernel is only planned");
  return store->GetOrPack(request, pack);
}

Result<KernelPlan::KernelPtr> KernelPlan::Build(const OpDescription& op,
                                                const BuildContext& context) const {
  if (!finish_) return draft_;
  return Guarded<KernelPtr>([&] { return finish_(op, context); });
}

Result<KernelPlan> Candidate::Plan(const OpDescription& op, const PlanContext& context) const {
  return Guarded<KernelPlan>([&]() -> Result<KernelPlan> {
    if (plan_ != nullptr) return plan_(op, context);
    FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, build_(op, WithoutStore(context)));
    return KernelPlan(std::move(kernel));
  });
}

Result<std::shared_ptr<const Kernel>> Candidate::Build(const OpDescription& op,
                                                       const BuildContext& context) const {
  FUSELITE_ASSIGN_OR_RETURN(const KernelPlan plan, Plan(op, context.plan()));
  return plan.Build(op, context);
}

}  // namespace fuselite::kernels
