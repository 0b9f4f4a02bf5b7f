#include "kernels/transpose_conv/transpose_conv.h"

#include <cstring>

#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"padding", FieldKind::kPadding, 0, offsetof(TransposeConvParams, padding),
     offsetof(tflite::TfLiteTransposeConvParams, padding)},
    {"stride_w", FieldKind::kInt32, 1, offsetof(TransposeConvParams, stride_w),
     offsetof(tflite::TfLiteTransposeConvParams, stride_width)},
    {"stride_h", FieldKind::kInt32, 2, offsetof(TransposeConvParams, stride_h),
     offsetof(tflite::TfLiteTransposeConvParams, stride_height)},
    {.name = "fused_activation_function",
     .kind = FieldKind::kActivation,
     .id = 3,
     .offset = offsetof(TransposeConvParams, activation),
     .struct_offset = offsetof(tflite::TfLiteTransposeConvParams, activation),
     .since_version = 4},
    {.name = "quantized_bias_type",
     .kind = FieldKind::kDataType,
     .id = 4,
     .offset = offsetof(TransposeConvParams, quantized_bias_type),
     .struct_offset = offsetof(tflite::TfLiteTransposeConvParams, quantized_bias_type),
     .since_version = 5},
};

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
constexpr DataType kI8 = DataType::kInt8, kU8 = DataType::kUInt8, kI16 = DataType::kInt16;
constexpr TypeRow kTypes[] = {{{kI32, kF32, kF32}, kF32},
                              {{kI32, kI8, kI8}, kI8},
                              {{kI32, kU8, kU8}, kU8},
                              {{kI32, kI8, kI16}, kI16},
                              {{kI32, kI8, kF32}, kF32}};

Status CheckBiasType(const OpDescription& op) {
  if (!op.has_input(3)) return Status();
  const DataType x = op.inputs[2].type, bias = op.inputs[3].type;
  const bool fits =
      x == kF32 ? bias == kF32 : bias == kI32 || (x == kI16 && bias == DataType::kInt64);
  if (fits) return Status();
  return Unsupported("does not take a ", DataTypeName(bias), " bias with ", DataTypeName(x),
                     " input");
}

Status CheckTail(const OpDescription& op, int32_t channels) {
  const auto& params = op.params.as<TransposeConvParams>();
  if (op.inputs[1].type == kF32) return MakeFloatTail(op, params.activation).status();
  if (op.inputs[2].type == kF32) return MakeTransposeConvHybridTail(op, channels).status();
  FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(op, false));
  return CheckQuantizedTail(op, params.activation, params.quantized_bias_type, channels);
}

Status InferTransposeConv(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckBiasType(op));
  op.outputs[0].type = op.inputs[2].type;
  const Result<TransposeConvShape> shape = ResolveTransposeConv(op);
  // What no shape will change is said before the run that knows the shape.
  if (shape.ok() || shape.status().code() == StatusCode::kDynamicShape) {
    FUSELITE_RETURN_IF_ERROR(CheckTail(op, op.inputs[1].shape[0]));
  }
  if (!shape.ok()) return shape.status();
  op.outputs[0].shape =
      Shape({shape->batch, shape->window.y.input, shape->window.x.input, shape->channels_out});
  return Status();
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanHighwayProduct},
    {"reference", BuildTransposeConvReference},
};

}  // namespace

Result<TransposeConvShape> ResolveTransposeConv(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDenseInputs(op, {1, 3}));
  const auto& params = op.params.as<TransposeConvParams>();
  const Shape& in = op.inputs[2].shape;
  const Shape& filter = op.inputs[1].shape;
  if (in.rank() != 4 || filter.rank() != 4) {
    return InvalidArgument("input ", in, " and filter ", filter, " must have 4 dimensions");
  }
  if (!(op.inputs[0].shape == Shape{4})) {
    return InvalidArgument("the output's shape is given as ", op.inputs[0].shape, ", not [4]");
  }
  if (op.inputs[0].data == nullptr) {
    return DynamicShape("the output's shape is only known at run time");
  }
  int32_t out[4];
  std::memcpy(out, op.inputs[0].data, sizeof(out));
  TransposeConvShape shape{
      .window = {}, .batch = in[0], .channels_in = in[3], .channels_out = filter[0]};
  if (filter[0] <= 0 || in[3] <= 0 || filter[3] != in[3] || out[0] != in[0] ||
      out[3] != filter[0]) {
    return InvalidArgument("input ", in, ", filter ", filter, " and output ", Shape(out),
                           " do not fit together");
  }
  if (!Shape::FromDims(out)) return InvalidArgument("output ", Shape(out), " is impossible");
  const TensorInfo* bias = op.has_input(3) ? &op.inputs[3] : nullptr;
  if (bias != nullptr && bias->elements() != shape.channels_out) {
    return InvalidArgument("bias ", bias->shape, " for ", shape.channels_out, " channels");
  }
  FUSELITE_ASSIGN_OR_RETURN(shape.window, ResolveWindow({.input_h = out[1],
                                                         .input_w = out[2],
                                                         .filter_h = filter[1],
                                                         .filter_w = filter[2],
                                                         .stride_h = params.stride_h,
                                                         .stride_w = params.stride_w,
                                                         .padding = params.padding}));
  if (shape.window.y.output != in[1] || shape.window.x.output != in[2]) {
    return InvalidArgument("an output of ", out[1], "x", out[2], " comes from an input of ",
                           shape.window.y.output, "x", shape.window.x.output, ", not of ", in[1],
                           "x", in[2]);
  }
  return shape;
}

Result<HybridTail> MakeTransposeConvHybridTail(const OpDescription& op, int32_t channels) {
  const size_t scales = op.inputs[1].quantization.scales.size();
  if (scales != static_cast<size_t>(channels)) {
    return Unsupported(scales, " scales of the filters for ", channels, " channels");
  }
  return MakeHybridTail(op, op.params.as<TransposeConvParams>().activation, channels);
}

const OperatorDef& TransposeConvOperator() {
  static constexpr OperatorDef kDef = {
      .name = "TRANSPOSE_CONV",
      .builtin_code = tflite::kTfLiteBuiltinTransposeConv,
      .options_type = 49,
      .max_version = 5,
      .fields = kFields,
      .params_bytes = sizeof(TransposeConvParams),
      .struct_bytes = sizeof(tflite::TfLiteTransposeConvParams),
      .min_inputs = 3,
      .max_inputs = 4,
      .types = kTypes,
      .limits = "rank 1 (the output's shape, 4)",
      .infer = InferTransposeConv,
      .candidates = kCandidates,
      .product = DescribeTransposeConvProduct,
      .product_inputs = ProductInputs{.x = 2, .bias = 3},
      .cost =
          [](const OpDescription& op) {
            return static_cast<double>(op.inputs[2].elements()) * op.inputs[1].shape.elements(0, 3);
          },
      .takes_tail = true,
      .bfloat16_values = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
