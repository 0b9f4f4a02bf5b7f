#include "jit/product/winograd.h"

#include "jit/product/float_operands.h"
#include "jit/product/product_bf16.h"
#include "jit/product/product_s16.h"
#include "jit/product/product_s8.h"
#include "kernels/winograd/hybrid_winograd.h"
#include "kernels/winograd/integer_winograd.h"
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

// The products that would compute the convolution otherwise: of bfloat16, unless those of float32
// are faster.
kernels::MakeWinogradMicroKernel EmittedBf16(Isa isa) {
  return [isa](const kernels::DepthRuns& depth, const kernels::ProductProblem& problem) {
    auto rounded = MicroKernelBf16::Make(depth, problem, {}, isa);
    return rounded.ok() ? std::move(rounded) : MicroKernelF32::Make(depth, problem, {}, isa);
  };
}

kernels::MakeWinogradMicroKernel EmittedPairs(Isa isa) {
  return [isa](const kernels::DepthRuns& depth, const kernels::ProductProblem& problem) {
    return MicroKernelS16::Make(depth, problem, isa);
  };
}

// The products of bytes that would compute the convolution otherwise, their tail left out.
kernels::MakeWinogradMicroKernel EmittedBytes(DataType type, Isa isa) {
  return [=](const kernels::DepthRuns& depth, const kernels::ProductProblem& problem) {
    ProductFormatS8 format;
    format.type = format.weights_type = type;
    format.constant_right = true;
    kernels::ProductProblem planned = problem;
    return MicroKernelS8::Make(std::move(format), depth, &planned, isa);
  };
}

Status CheckPairs(Isa isa) {
  if (VectorIsa::Supported(isa)) return Status();
  return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
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

Result<kernels::KernelPlan> PlanWinogradS8(const kernels::OpDescription& op,
                                           const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckPairs(context.isa));
  if (context.isa.has_vnni()) return Unsupported("dot products of bytes take less time");
  return kernels::PlanIntegerWinograd(op, context, EmittedPairs(context.isa),
                                      EmittedBytes(op.inputs[0].type, context.isa));
}

Result<kernels::KernelPlan> PlanWinogradHybrid(const kernels::OpDescription& op,
                                               const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckPairs(context.isa));
  if (context.isa.has_vnni()) return Unsupported("dot products of bytes take less time");
  return kernels::PlanHybridWinograd(op, context, EmittedPairs(context.isa),
                                     EmittedBytes(DataType::kInt8, context.isa));
}

Result<kernels::KernelPlan> PlanWinogradHybridAnyway(const kernels::OpDescription& op,
                                                     const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckPairs(context.isa));
  return kernels::PlanHybridWinogradAnyway(op, context, EmittedPairs(context.isa));
}

Result<kernels::KernelPlan> PlanWinogradS8Anyway(const kernels::OpDescription& op,
                                                 const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckPairs(context.isa));
  return kernels::PlanIntegerWinogradAnyway(op, context, EmittedPairs(context.isa));
}

}  // namespace fuselite::jit
