#include <limits>

#include "kernels/micro_kernels/product_f32.h"
#include "kernels/winograd/winograd.h"

namespace fuselite::kernels {
namespace {

MakeWinogradMicroKernel Vectorized(Isa isa) {
  return [isa](const DepthRuns& depth, const ProductProblem& problem) {
    constexpr float kNoBound = std::numeric_limits<float>::infinity();
    return MakeHighwayMicroKernelF32(depth, problem, -kNoBound, kNoBound, isa);
  };
}

}  // namespace

Result<KernelPlan> PlanHighwayWinograd(const OpDescription& op, const PlanContext& context) {
  const MakeWinogradMicroKernel vectorized = Vectorized(context.isa);
  return PlanWinograd(op, context, vectorized, vectorized);
}

Result<KernelPlan> PlanHighwayWinogradWith(const OpDescription& op, const PlanContext& context,
                                           int outputs) {
  return PlanWinogradWith(op, context, outputs, Vectorized(context.isa));
}

}  // namespace fuselite::kernels
