#include "kernels/elementwise/quantized/quantized_binary.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/quantized/quantized_functions.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

template <class T, class F, class Second = T>
std::unique_ptr<Kernel> RowsKernel(BinaryKind kind, const OpDescription& op, F function) {
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(BinaryName(kind)) + ' ' +
                        std::string(DataTypeName(op.inputs[0].type)) + " reference",
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
                    [plan, function](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      bool ok = true;
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const auto* x = static_cast<const T*>(args.inputs[0]) + piece.offsets[0];
                        const auto* y =
                            static_cast<const Second*>(args.inputs[1]) + piece.offsets[1];
                        auto* out = static_cast<T*>(args.outputs[0]) + piece.offsets[2];
                        for (int64_t i = 0; i < piece.count; ++i) {
                          const Second divisor = y[i * plan.stride(1)];
                          if constexpr (std::is_same_v<F, QuantizedQuotient>) {
                            if (function.Refuses(divisor)) {
                              ok = false;
                              return;
                            }
                          }
                          out[i] = static_cast<T>(function(x[i * plan.stride(0)], divisor));
                        }
                      });
                      return ok ? Status() : InvalidArgument("a quantized value is divided by 0");
                    });
}

template <class F>
std::unique_ptr<Kernel> ReferenceKernel(BinaryKind kind, const OpDescription& op, F function) {
  switch (op.inputs[0].type) {
    case DataType::kUInt8: return RowsKernel<uint8_t>(kind, op, function);
    case DataType::kInt16:
      if (op.inputs[1].type == DataType::kInt8)
        return RowsKernel<int16_t, F, int8_t>(kind, op, function);
      return RowsKernel<int16_t>(kind, op, function);
    default: return RowsKernel<int8_t>(kind, op, function);
  }
}

Status CheckFunction(BinaryKind kind, const OpDescription& op) {
  switch (kind) {
    case BinaryKind::kMul: return MakeQuantizedProduct(op).status();
    case BinaryKind::kDiv: return MakeQuantizedQuotient(op).status();
    case BinaryKind::kPrelu: return MakeQuantizedPrelu(op).status();
    case BinaryKind::kSquaredDifference: return MakeQuantizedSquaredDifference(op).status();
    default:
      if (HasPowerOfTwoScales(op)) return MakeQuantizedPowerSum(kind, op).status();
      return MakeQuantizedSum(kind, op).status();
  }
}

Result<std::unique_ptr<Kernel>> BuildReferenceOf(BinaryKind kind, const OpDescription& op) {
  switch (kind) {
    case BinaryKind::kMul: {
      FUSELITE_ASSIGN_OR_RETURN(const auto function, MakeQuantizedProduct(op));
      return ReferenceKernel(kind, op, function);
    }
    case BinaryKind::kDiv: {
      FUSELITE_ASSIGN_OR_RETURN(const auto function, MakeQuantizedQuotient(op));
      return ReferenceKernel(kind, op, function);
    }
    case BinaryKind::kPrelu: {
      FUSELITE_ASSIGN_OR_RETURN(const auto function, MakeQuantizedPrelu(op));
      return ReferenceKernel(kind, op, function);
    }
    case BinaryKind::kSquaredDifference: {
      FUSELITE_ASSIGN_OR_RETURN(const auto function, MakeQuantizedSquaredDifference(op));
      return ReferenceKernel(kind, op, function);
    }
    default: {
      if (HasPowerOfTwoScales(op)) {
        FUSELITE_ASSIGN_OR_RETURN(const auto function, MakeQuantizedPowerSum(kind, op));
        return ReferenceKernel(kind, op, function);
      }
      FUSELITE_ASSIGN_OR_RETURN(const auto function, MakeQuantizedSum(kind, op));
      return ReferenceKernel(kind, op, function);
    }
  }
}

}  // namespace

bool QuantizedSumStage(const OpDescription& op, int flowing_input, TailStage* stage,
                       int64_t* rows_per_batch) {
  const std::optional<BinaryKind> kind = BinaryKindOf(*op.op);
  if (kind != BinaryKind::kAdd && kind != BinaryKind::kSub) return false;
  if (op.inputs[flowing_input].shape != op.outputs[0].shape) return false;
  const auto use = AsTailOperand(op.inputs[1 - flowing_input], op.outputs[0].shape);
  const auto sum = MakeQuantizedSum(*kind, op);
  if (!use || !sum.ok()) return false;
  *stage = TailStage();
  stage->kind = TailStage::Kind::kQuantizedAdd;
  stage->operand = use->operand;
  stage->operand.input = 1 - flowing_input;
  stage->add = sum->q;
  if (flowing_input == 1) {
    std::swap(stage->add.x_offset, stage->add.y_offset);
    std::swap(stage->add.x_multiplier, stage->add.y_multiplier);
    std::swap(stage->add.x_shift, stage->add.y_shift);
    std::swap(stage->add.negate_x, stage->add.negate_y);
  }
  *rows_per_batch = use->rows_per_batch;
  return true;
}

Status CheckQuantizedBinary(BinaryKind kind, const OpDescription& op) {
  for (const TensorInfo* operand : {&op.inputs[0], &op.inputs[1], &op.outputs[0]}) {
    int32_t min, max;
    QuantizedTypeRange(operand->type, &min, &max);
    const Quantization& q = operand->quantization;
    if (q.per_channel() || !std::isfinite(q.scale()) || !(q.scale() > 0)) {
      return Unsupported("scales must be positive, one per tensor");
    }
    if (std::clamp(q.zero_point(), min, max) != q.zero_point()) {
      return Unsupported("zero point ", q.zero_point(), " is outside of the type's range");
    }
    if (operand->type == DataType::kInt16 && q.zero_point() != 0 && kind != BinaryKind::kDiv) {
      return InvalidArgument("the zero points of int16 operands must be 0");
    }
  }
  if (!op.tail.empty()) return Unsupported("does not take a tail behind a quantized operator");
  return CheckFunction(kind, op);
}

Result<KernelPlan> PlanQuantizedBinary(BinaryKind kind, const OpDescription& op,
                                       const PlanContext& context, TailCandidate candidate) {
  if (candidate == TailCandidate::kReference) return OwnPlan(BuildReferenceOf(kind, op));
  return PlanQuantizedRows(kind, op, context);
}

}  // namespace fuselite::kernels
