#include "kernels/micro_kernels/winograd.h"

#include <limits>

#include "kernels/micro_kernels/product_f32.h"
#include "kernels/winograd/winograd.h"

namespace fuselite::kernels {

Result<KernelPlan> PlanHighwayWinograd(const OpDescription& op, const PlanContext& context) {
  const auto make = [isa = context.isa](const DepthRuns& depth, const ProductProblem& problem) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return MakeHighwayMicroKernelF32(depth, problem, -kInfinity, kInfinity, isa);
  };
  return PlanWinograd(op, context, make, make);
}

}  // namespace fuselite::kernels
