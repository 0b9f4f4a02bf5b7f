#include "kernels/slice/late.h"

#include <algorithm>
#include <span>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {

bool BeginsAreKnown(const OpDescription& op) {
  return std::ranges::all_of(std::span(op.inputs).subspan(1),
                             [](const TensorInfo& info) { return info.constant(); });
}

Result<std::unique_ptr<Kernel>> MakeLateMovement(const OpDescription& op, PlanMovement plan) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return MakeKernel("slice at run-time begin", {.units = op.outputs[0].elements() > 0 ? 1 : 0},
                    [op, plan](const KernelArgs& args, int64_t, int64_t) -> Status {
                      OpDescription now = op;
                      for (size_t i = 1; i < now.inputs.size(); ++i) {
                        now.inputs[i].data = args.inputs[i];
                      }
                      FUSELITE_ASSIGN_OR_RETURN(const Movement movement, plan(now));
                      FUSELITE_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> copy,
                                                MakeMovementKernel(now, movement));
                      return copy->Run(args, 0, 0, copy->units(0));
                    });
}

}  // namespace fuselite::kernels
