#include "jit/elementwise/elementwise.h"

#include "jit/elementwise/elementwise_emitter.h"
#include "jit/product/float_operands.h"
#include "jit/tail/tail_emitter.h"
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/chain_kernel.h"
#include "kernels/widened.h"

namespace fuselite::jit {
namespace {

using kernels::ChainRowsSpec;
using kernels::KernelPlan;
using kernels::OpDescription;

class EmittedRows final : public kernels::ChainRows {
 public:
  explicit EmittedRows(Isa isa, SharedCode code = nullptr) : isa_(isa), code_(std::move(code)) {}

  std::string target() const override { return internal::Join(isa_.name(), " jit"); }
  int lanes() const override { return isa_.lanes(); }
  Status Check(const ChainRowsSpec& spec) const override {
    return CheckElementwise({isa_.features, spec});
  }
  Result<std::shared_ptr<const ChainRows>> Emit(const ChainRowsSpec& spec,
                                                std::span<const int64_t> lengths,
                                                const std::string& name) const override {
    FUSELITE_ASSIGN_OR_RETURN(SharedCode code,
                              EmitElementwise({isa_.features, spec}, lengths, name));
    return std::shared_ptr<const ChainRows>(
        std::make_shared<EmittedRows>(isa_.features, std::move(code)));
  }
  void Run(size_t i, kernels::ChainRowsArgs* args) const override {
    code_->entry<ElementwiseFunction>(i)(args);
  }

 private:
  VectorIsa isa_;
  SharedCode code_;
};

// The least length of rows that repeat: shorter ones are joined by Highway's kernel.
constexpr int32_t kShortestRepeated = 8;

// The operator and its tail as one chain on input `flowing`.
Result<DividedTail> FuseChain(const OpDescription& op, int* flowing) {
  std::optional<kernels::StagesOnInput> own = kernels::AsStagesOnRows(kernels::WithFloat32(op));
  if (!own) return Unsupported("both inputs broadcast, none of which has whole rows");
  const bool repeats = op.inputs[own->flowing].elements() != op.outputs[0].elements();
  if (repeats && op.outputs[0].shape.dim(-1) < kShortestRepeated) {
    return Unsupported("rows that repeat are too short for vectors");
  }
  OpDescription chain = op;
  chain.tail = std::move(own->stages);
  for (const kernels::TailStage& stage : op.tail.stages) {
    if (!kernels::AppendStage(stage, op.tail.rows_per_batch, &chain.tail)) {
      return Unsupported("does not take operands that repeat in two ways");
    }
  }
  *flowing = own->flowing;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail fused,
                            DivideFloatTail(chain, kernels::Activation::kNone, 1));
  if (fused.emitted.empty() && !fused.rest.empty()) {
    return TailEmitter::Check(fused.rest.stages.front());
  }
  return fused;
}

}  // namespace

Result<KernelPlan> PlanElementwise(const OpDescription& op, const kernels::PlanContext& context) {
  // Of bfloat16 a number that rounds beyond the largest one becomes infinite, where TFLite's
  // operators of bfloat16 stay finite.
  FUSELITE_RETURN_IF_ERROR(CheckFloats(op, op.inputs[0], context));
  if (op.outputs[0].elements() == 0) return Unsupported("nothing is emitted for an empty output");
  int flowing = 0;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail tail, FuseChain(op, &flowing));
  kernels::TailRest rest = tail.RestOnFloats(context.isa);
  return PlanChainKernel(op, flowing, std::move(tail.emitted), std::move(rest),
                         std::make_shared<const EmittedRows>(context.isa));
}

}  // namespace fuselite::jit
