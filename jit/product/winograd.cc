#include "jit/product/winograd.h"

#include "jit/product/product_f32.h"
#include "kernels/winograd/winograd.h"

namespace fuselite::jit {
namespace {

kernels::MakeMicroKernelF32 Emitted(Isa isa) {
  return [isa](const kernels::DepthRuns& depth, const kernels::ProductProblem& problem)
             -> Result<std::shared_ptr<const kernels::MicroKernel>> {
    if (!VectorIsa::Supported(isa)) {
      return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
    }
    return MicroKernelF32::Make(depth, problem, {}, isa);
  };
}

}  // namespace

Result<kernels::KernelPlan> PlanWinogradF32(const kernels::OpDescription& op,
                                            const kernels::PlanContext& context) {
  return kernels::PlanWinograd(op, context, Emitted(context.isa));
}

Result<kernels::KernelPlan> PlanWinogradF32With(const kernels::OpDescription& op,
                                                const kernels::PlanContext& context, int outputs) {
  return kernels::PlanWinogradWith(op, context, outputs, Emitted(context.isa));
}

}  // namespace fuselite::jit
