#include "jit/product_hybrid.h"

#include "jit/byte_weights.h"
#include "jit/gemm_s8.h"
#include "jit/hybrid_kernel.h"
#include "jit/product_s8.h"
#include "jit/quantized_image.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/hybrid_tail.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::BuildContext;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::FullyConnectedParams;
using kernels::FullyConnectedShape;
using kernels::HybridTail;
using kernels::OpDescription;
using kernels::TailStage;

Result<std::unique_ptr<Kernel>> BuildProduct(const OpDescription& op, const BuildContext& context,
                                             GemmS8Problem problem, const QuantizedImage& image) {
  FUSELITE_ASSIGN_OR_RETURN(GemmS8 gemm, GemmS8::Build(std::move(problem), context));
  const TensorInfo& weights = op.inputs[1];
  const auto pack = [&](std::byte* to) {
    const int64_t depth = int64_t{weights.elements()} / weights.shape[0];
    const ByteWeights bytes(weights);
    gemm.Pack({bytes.data(), 1, depth, nullptr}, to, 0, gemm.panels());
  };
  const PackRequest request{.source = weights.data,
                            .source_bytes = weights.bytes(),
                            .layout = gemm.layout(),
                            .bytes = gemm.packed_bytes()};
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, context.Pack(request, pack));
  return std::unique_ptr<Kernel>(
      new HybridKernel<GemmS8>(std::move(gemm), image, std::move(packed)));
}

}  // namespace

Status CheckHybridOperands(const OpDescription& op, Isa isa, bool constant) {
  if (!VectorIsa::Supported(isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
  }
  const TensorInfo &in = op.inputs[0], &weights = op.inputs[1];
  if (in.type != DataType::kFloat32 || ByteType(weights.type) != DataType::kInt8) {
    return Unsupported("only float32 with int8 or int4 weights has a hybrid emitter, not ",
                       DataTypeName(in.type), " with ", DataTypeName(weights.type));
  }
  if (constant && !weights.constant()) {
    return Unsupported("weights known only at run time have no emitter");
  }
  if (op.outputs[0].type != DataType::kFloat32) {
    return Unsupported("an output of ", DataTypeName(op.outputs[0].type), " has no emitter");
  }
  return Status();
}

Result<FloatOutput> MakeFloatOutput(const OpDescription& op, Activation activation, HybridTail tail,
                                    const FloatRows& rows) {
  FUSELITE_ASSIGN_OR_RETURN(FusedTail fused, FuseTail(op, activation, rows.line_rows));
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
  return output;
}

Result<GemmS8Problem> HybridProblemOf(const OpDescription& op, Activation activation,
                                      HybridTail tail, FloatRows rows, Isa isa) {
  GemmS8Problem problem;
  const bool dot = HasDotProduct(isa), asymmetric = rows.row_zero_points;
  rows.row_zero_points &= dot;
  problem.channels = static_cast<int64_t>(tail.scales.size());
  FUSELITE_ASSIGN_OR_RETURN(problem.floats, MakeFloatOutput(op, activation, std::move(tail), rows));
  problem.type = DataType::kUInt8;
  problem.zero_point = !dot ? 0 : asymmetric ? 1 : 128;
  problem.out_pitch = op.outputs[0].pitch();
  problem.tail.output = op.outputs[0];
  return problem;
}

Result<std::unique_ptr<Kernel>> BuildConv2DHybrid(const OpDescription& op,
                                                  const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  if (shape.groups != 1) return Unsupported(shape.groups, " groups have no emitter");
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, kernels::MakeConv2DHybridTail(op, shape));
  const bool asymmetric = kernels::Conv2DHasSeveralScales(op, shape);
  QuantizedImage::Layout layout =
      QuantizedImage::LayoutFor(shape.window, shape.batch, shape.channels_in, op.inputs[0].pitch());
  layout.asymmetric = asymmetric;
  layout.bytes = HasDotProduct(context.isa);
  const QuantizedImage image(layout, context.isa);
  const WindowMemory memory = {.pixel = image.pixel_bytes(),
                               .row = image.row_bytes(),
                               .image = image.image_bytes(),
                               .dense = true};
  const bool pixels_follow = PixelsFollow(shape.window);
  const auto& [y, x] = shape.window;
  FUSELITE_ASSIGN_OR_RETURN(
      GemmS8Problem problem,
      HybridProblemOf(op, op.params.as<Conv2DParams>().activation, std::move(tail),
                      {.line_rows = pixels_follow ? int64_t{y.output} * x.output : x.output,
                       .row_zero_points = asymmetric,
                       .per_row = false},
                      context.isa));
  problem.name = "conv hybrid";
  SetWindows(shape.window, shape.batch, shape.channels_in, memory, &problem);
  if (pixels_follow) {
    problem.line_rows *= problem.lines_per_image;
    problem.lines_per_image = 1;
  }
  return BuildProduct(op, context, std::move(problem), image);
}

Result<std::unique_ptr<Kernel>> BuildFullyConnectedHybrid(const OpDescription& op,
                                                          const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, kernels::ResolveFullyConnected(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail,
                            kernels::MakeHybridTail(op, params.activation, 2, shape.units));
  const QuantizedImage image(
      {.images = shape.rows,
       .channels = shape.depth,
       .pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth,
       .asymmetric = params.asymmetric_quantize_inputs,
       .bytes = HasDotProduct(context.isa)},
      context.isa);
  // Operands of the tail that repeat per batch are then not emitted.
  FUSELITE_ASSIGN_OR_RETURN(GemmS8Problem problem,
                            HybridProblemOf(op, params.activation, std::move(tail),
                                            {.line_rows = shape.rows,
                                             .row_zero_points = params.asymmetric_quantize_inputs},
                                            context.isa));
  problem.name = "fully_connected hybrid";
  problem.depth.runs = {{0, shape.depth}};
  problem.a_step = image.pixel_bytes();
  problem.line_rows = shape.rows;
  return BuildProduct(op, context, std::move(problem), image);
}

}  // namespace fuselite::jit
