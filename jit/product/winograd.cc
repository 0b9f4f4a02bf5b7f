#include "jit/product/winograd.h"

#include "jit/product/product_bf16.h"
#include "kernels/winograd/winograd.h"

namespace fuselite::jit {
namespace {

kernels::MakeWinogradMicroKernel Emitted(Isa isa) {
  return [isa](const kernels::DepthRuns& depth, const kernels::ProductProblem& problem)
             -> Result<std::shared_ptr<const kernels::MicroKernel>> {
    if (!VectorIsa::Supported(isa)) {
      return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
    }
    return MicroKernelF32::Make(depth, problem, {}, isa);
  };
}

// The products of bfloat16 that would compute the convolution otherwise.
kernels::MakeWinogradMicroKernel EmittedBf16(Isa isa) {
  return [isa](const kernels::DepthRuns& depth, const kernels::ProductProblem& problem) {
    return MicroKernelBf16::Make(depth, problem, {}, isa);
  };
}

}  // namespace

// The terms of Winograd's algorithm stay float32, whose errors its transforms enlarge least.
Result<kernels::KernelPlan> PlanWinogradF32(const kernels::OpDescription& op,
                                            const kernels::PlanContext& context) {
  const kernels::MakeWinogradMicroKernel emitted = Emitted(context.isa);
  const bool rounds = CheckBf16(context).ok();
  return kernels::PlanWinograd(op, context, emitted, rounds ? EmittedBf16(context.isa) : emitted);
}

Result<kernels::KernelPlan> PlanWinogradF32With(const kernels::OpDescription& op,
                                                const kernels::PlanContext& context, int outputs) {
  return kernels::PlanWinogradWith(op, context, outputs, Emitted(context.isa));
}

}  // namespace fuselite::jit
