#include "jit/product/product_hybrid.h"

#include "jit/product/product_s8.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/product/constant.h"
#include "kernels/product/product_kernel.h"
#include "kernels/product/tiling.h"
#include "kernels/source/image_source.h"

namespace fuselite::jit {

using kernels::Activation;
using kernels::HybridTail;
using kernels::OpDescription;
using kernels::ProductDescription;
using kernels::ProductProblem;
using kernels::TailStage;

Status CheckHybridOperands(const OpDescription& op, Isa isa) {
  if (!VectorIsa::Supported(isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
  }
  const kernels::ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  if (in.type != DataType::kFloat32 || kernels::ReadableType(weights.type) != DataType::kInt8) {
    return Unsupported("takes float32 by weights of int8 or int4, not ", DataTypeName(in.type),
                       " by ", DataTypeName(weights.type));
  }
  if (op.outputs[0].type != DataType::kFloat32) {
    return Unsupported("does not give ", DataTypeName(op.outputs[0].type));
  }
  return Status();
}

Result<FloatOutput> MakeFloatOutput(const OpDescription& op, Activation activation, HybridTail tail,
                                    const FloatRows& rows) {
  FUSELITE_ASSIGN_OR_RETURN(DividedTail fused, DivideFloatTail(op, activation, rows.line_rows));
  if (tail.bias >= 0) {
    const TailStage bias =
        TailStage::Binary(kernels::BinaryKind::kAdd, {.input = tail.bias, .channel_stride = 1});
    fused.emitted.stages.insert(fused.emitted.stages.begin(), bias);
  }
  FloatOutput output;
  output.scales = std::move(tail.scales);
  output.dequantization = {.weights_first = tail.weights_first,
                           .row_zero_points = rows.row_zero_points,
                           .per_row = rows.per_row,
                           .tail = std::move(fused.emitted)};
  output.rest = std::move(fused.rest);
  output.why_rest = std::move(fused.why_rest);
  return output;
}

// Terms that TFLite scales one by one (Hybrid::scales_terms) are scaled once, as an exact sum.
Result<kernels::KernelPlan> PlanProductHybrid(const OpDescription& op,
                                              const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription d, op.op->product(op));
  if (!d.hybrid) return Unsupported("this operator has no hybrid emitter");
  if (d.left_transposed) return Unsupported("does not take a transposed left operand");
  const TensorInfo& weights = op.inputs[op.op->product_inputs->weights];
  const bool shares = d.hybrid->scale_per_row && weights.constant();
  // Single rows read the panels of large weights, too, which take them 6% to 16% longer as byte
  // pairs (the decoders of small language models on a Zen 3); 64 rows take 4% to 7% less.
  std::optional<std::vector<int64_t>> outliers;
  if (!shares || weights.elements() < kernels::kWorthSharing) {
    outliers = TermsOfBytePairs(op, d, context.isa);
  }
  const bool byte_pairs = outliers.has_value(), bytes = context.isa.has_vnni() || byte_pairs;
  const bool asymmetric = d.hybrid->asymmetric;
  ProductFormatS8 format{.type = DataType::kUInt8,
                         .weights_type = DataType::kInt8,
                         .zero_point = !bytes       ? 0
                                       : asymmetric ? 1
                                                    : 128,
                         .byte_pairs = byte_pairs,
                         .shares_panels = shares,
                         .outliers = std::move(outliers),
                         .tail = {},
                         .floats = std::nullopt,
                         .output = DataType::kFloat32};
  FUSELITE_ASSIGN_OR_RETURN(format.floats, MakeFloatOutput(op, d.activation, d.hybrid->tail,
                                                           {.line_rows = RowsOfLine(d),
                                                            .row_zero_points = asymmetric && bytes,
                                                            .per_row = d.hybrid->scale_per_row}));
  kernels::ProductKernelSpec spec;
  spec.source = std::make_unique<kernels::QuantizedSource>(op.op->product_inputs->x,
                                                           HybridLayout(d, bytes), context.isa);
  spec.value_bytes = bytes ? 1 : 2;
  spec.row_value_bytes = sizeof(RowScale);
  spec.row_values_per_image = !d.hybrid->scale_per_row;
  spec.tail_is_linear = kernels::TailIsLinear(format.floats->dequantization.tail);
  spec.micro_kernel = [&](const kernels::DepthRuns& depth, ProductProblem* problem) {
    return MicroKernelS8::Make(format, depth, problem, context.isa);
  };
  return PlanProductKernel(op, d, spec, context);
}

// A few rows take as long as memory needs for the weights, which panels may make larger: int4
// become bytes, and those int16 without dot products, but for a single row and where all numbers of
// rows share them (ProductFormatS8::shares_panels). By panels of bytes 2 to 4 rows take 12% to 16%
// less than by the weights as they are (AVX2 on a Zen 4).
Result<kernels::KernelPlan> PlanFullyConnectedHybrid(const OpDescription& op,
                                                     const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  if (kernels::ReadsUnpacked(op)) {
    return Unsupported("few rows do not repay packing weights at each run");
  }
  FUSELITE_ASSIGN_OR_RETURN(const auto shape, kernels::ResolveFullyConnected(op));
  const int64_t weights = int64_t{shape.units} * shape.depth;
  const bool widens = !context.isa.has_vnni() && shape.rows > 1 && weights < kernels::kWorthSharing;
  const bool grows = op.inputs[1].type == DataType::kInt4 || widens;
  if (grows && kernels::CheckFewRows(op).ok()) {
    return Unsupported("panels would make ", DataTypeName(op.inputs[1].type),
                       " weights larger, which a few rows do not repay");
  }
  return PlanProductHybrid(op, context);
}

}  // namespace fuselite::jit
