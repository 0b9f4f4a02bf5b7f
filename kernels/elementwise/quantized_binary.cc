#include "kernels/elementwise/quantized_binary.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/as_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/quantization.h"

namespace fuselite::kernels {
namespace {

// Both operands to twice the larger scale, with 20 more bits; their sum to the output's.
Result<QuantizedAdd> MakeAdd(BinaryKind kind, const OpDescription& op) {
  const Quantization& x = op.inputs[0].quantization;
  const Quantization& y = op.inputs[1].quantization;
  const Quantization& out = op.outputs[0].quantization;
  QuantizedAdd add{.left_shift = 20,
                   .x_offset = -x.zero_point(),
                   .y_offset = -y.zero_point(),
                   .output_offset = out.zero_point()};
  const double twice_larger = 2 * std::max(x.scale(), y.scale());
  const FixedPoint x_scale = ToFixedPoint(x.scale() / twice_larger);
  const FixedPoint y_scale = ToFixedPoint(y.scale() / twice_larger);
  const double to_output = twice_larger / ((1 << add.left_shift) * out.scale());
  if (kind == BinaryKind::kAdd && !(to_output < 1)) {
    return Unsupported("an output scale of ", out.scale(), " for inputs of ", x.scale(), " and ",
                       y.scale());
  }
  const FixedPoint out_scale = ToFixedPoint(to_output);
  add.x_multiplier = x_scale.multiplier;
  add.x_shift = x_scale.shift;
  add.y_multiplier = y_scale.multiplier;
  add.y_shift = y_scale.shift;
  add.output_multiplier = out_scale.multiplier;
  add.output_shift = out_scale.shift;
  FUSELITE_RETURN_IF_ERROR(QuantizedActivationRange(op.params.as<ArithmeticParams>().activation,
                                                    op.outputs[0].type, out, &add.min, &add.max));
  return add;
}

struct AddOrSub {
  QuantizedAdd q;
  bool subtract;
  int32_t operator()(int32_t x, int32_t y) const {
    const auto scaled = [&](int32_t v, int32_t offset, int32_t multiplier, int32_t shift) {
      return MultiplyByQuantizedMultiplier((v + offset) * (1 << q.left_shift), multiplier, shift);
    };
    const int32_t a = scaled(x, q.x_offset, q.x_multiplier, q.x_shift);
    const int32_t b = scaled(y, q.y_offset, q.y_multiplier, q.y_shift);
    const int32_t sum = subtract ? a - b : a + b;
    const int32_t result =
        MultiplyByQuantizedMultiplier(sum, q.output_multiplier, q.output_shift) + q.output_offset;
    return std::min(q.max, std::max(q.min, result));
  }
};

struct Product {
  int32_t x_zero, y_zero, zero;
  FixedPoint scale;
  int32_t min, max;
  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t result = zero + MultiplyByQuantizedMultiplier((x - x_zero) * (y - y_zero),
                                                                scale.multiplier, scale.shift);
    return std::min(max, std::max(min, result));
  }
};

Result<Product> MakeProduct(const OpDescription& op) {
  const Quantization& x = op.inputs[0].quantization;
  const Quantization& y = op.inputs[1].quantization;
  const Quantization& out = op.outputs[0].quantization;
  Product product{.x_zero = x.zero_point(),
                  .y_zero = y.zero_point(),
                  .zero = out.zero_point(),
                  .scale = ToFixedPoint(x.scale() * y.scale() / out.scale()),
                  .min = 0,
                  .max = 0};
  FUSELITE_RETURN_IF_ERROR(QuantizedActivationRange(op.params.as<ArithmeticParams>().activation,
                                                    op.outputs[0].type, out, &product.min,
                                                    &product.max));
  return product;
}

template <class T, class F>
std::unique_ptr<Kernel> RowsKernel(BinaryKind kind, const OpDescription& op, F function) {
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      std::string(BinaryName(kind)) + ' ' + std::string(DataTypeName(op.inputs[0].type)) +
          " reference",
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [plan, function](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          const auto* x = static_cast<const T*>(args.inputs[0]) + piece.offsets[0];
          const auto* y = static_cast<const T*>(args.inputs[1]) + piece.offsets[1];
          auto* out = static_cast<T*>(args.outputs[0]) + piece.offsets[2];
          for (int64_t i = 0; i < piece.count; ++i) {
            out[i] = static_cast<T>(function(x[i * plan.stride(0)], y[i * plan.stride(1)]));
          }
        });
      });
}

template <class F>
std::unique_ptr<Kernel> ReferenceKernel(BinaryKind kind, const OpDescription& op, F function) {
  if (op.inputs[0].type == DataType::kUInt8) return RowsKernel<uint8_t>(kind, op, function);
  return RowsKernel<int8_t>(kind, op, function);
}

// The tail's stage for ADD, with x and y exchanged where input 1 flows.
Result<std::unique_ptr<Kernel>> BuildAddOfTail(const OpDescription& op,
                                               const BuildContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const QuantizedAdd add, MakeAdd(BinaryKind::kAdd, op));
  for (const int flowing : {0, 1}) {
    if (op.inputs[flowing].shape != op.outputs[0].shape) continue;
    const auto use = AsTailOperand(op.inputs[1 - flowing], op.outputs[0].shape);
    if (!use) continue;
    TailStage stage;
    stage.kind = TailStage::Kind::kQuantizedAdd;
    stage.operand = use->operand;
    stage.operand.input = 1 - flowing;
    stage.add = add;
    if (flowing == 1) {
      std::swap(stage.add.x_offset, stage.add.y_offset);
      std::swap(stage.add.x_multiplier, stage.add.y_multiplier);
      std::swap(stage.add.x_shift, stage.add.y_shift);
    }
    Tail tail;
    AppendStage(stage, use->rows_per_batch, &tail);
    return BuildTailKernel("add", op, context, std::move(tail), flowing, TailCandidate::kHighway);
  }
  return Unsupported("both inputs broadcast");
}

}  // namespace

Status CheckQuantizedBinary(BinaryKind kind, const OpDescription& op) {
  int32_t min, max;
  QuantizedTypeRange(op.inputs[0].type, &min, &max);
  for (const TensorInfo* operand : {&op.inputs[0], &op.inputs[1], &op.outputs[0]}) {
    const Quantization& q = operand->quantization;
    if (q.per_channel() || !std::isfinite(q.scale()) || !(q.scale() > 0)) {
      return InvalidArgument("scales must be positive, one per tensor");
    }
    if (std::clamp(q.zero_point(), min, max) != q.zero_point()) {
      return InvalidArgument("zero point ", q.zero_point(), " leaves 8 bits");
    }
  }
  if (!op.tail.empty()) return Unsupported("a tail behind a quantized operator");
  if (kind == BinaryKind::kMul) return MakeProduct(op).status();
  return MakeAdd(kind, op).status();
}

Result<std::unique_ptr<Kernel>> BuildQuantizedBinary(BinaryKind kind, const OpDescription& op,
                                                     const BuildContext& context,
                                                     TailCandidate candidate) {
  if (candidate == TailCandidate::kHighway) {
    if (kind == BinaryKind::kAdd) return BuildAddOfTail(op, context);
    return Unsupported("8-bit ", BinaryName(kind), " has no vector version");
  }
  if (kind == BinaryKind::kMul) {
    FUSELITE_ASSIGN_OR_RETURN(const Product product, MakeProduct(op));
    return ReferenceKernel(kind, op, product);
  }
  FUSELITE_ASSIGN_OR_RETURN(const QuantizedAdd add, MakeAdd(kind, op));
  return ReferenceKernel(kind, op, AddOrSub{add, kind == BinaryKind::kSub});
}

}  // namespace fuselite::kernels
