#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include "kernels/filter_operands.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/product/description.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"padding", FieldKind::kPadding, 0, offsetof(DepthwiseConv2DParams, padding),
     offsetof(tflite::TfLiteDepthwiseConvParams, padding)},
    {"stride_w", FieldKind::kInt32, 1, offsetof(DepthwiseConv2DParams, stride_w),
     offsetof(tflite::TfLiteDepthwiseConvParams, stride_width)},
    {"stride_h", FieldKind::kInt32, 2, offsetof(DepthwiseConv2DParams, stride_h),
     offsetof(tflite::TfLiteDepthwiseConvParams, stride_height)},
    {"depth_multiplier", FieldKind::kInt32, 3, offsetof(DepthwiseConv2DParams, depth_multiplier),
     offsetof(tflite::TfLiteDepthwiseConvParams, depth_multiplier)},
    {"fused_activation_function", FieldKind::kActivation, 4,
     offsetof(DepthwiseConv2DParams, activation),
     offsetof(tflite::TfLiteDepthwiseConvParams, activation)},
    {.name = "dilation_w_factor",
     .kind = FieldKind::kInt32,
     .id = 5,
     .offset = offsetof(DepthwiseConv2DParams, dilation_w),
     .struct_offset = offsetof(tflite::TfLiteDepthwiseConvParams, dilation_width_factor),
     .default_value = 1},
    {.name = "dilation_h_factor",
     .kind = FieldKind::kInt32,
     .id = 6,
     .offset = offsetof(DepthwiseConv2DParams, dilation_h),
     .struct_offset = offsetof(tflite::TfLiteDepthwiseConvParams, dilation_height_factor),
     .default_value = 1},
};

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8, kU8 = DataType::kUInt8, kI16 = DataType::kInt16;
constexpr DataType kI4 = DataType::kInt4, kI32 = DataType::kInt32, kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}, {{kI8, kI8, kI32}, kI8},
                              {{kI8, kI4, kI32}, kI8},    {{kU8, kU8, kI32}, kU8},
                              {{kI16, kI8, kI64}, kI16},  {{kI16, kI4, kI64}, kI16},
                              {{kF32, kI8, kF32}, kF32}};

Status InferDepthwiseConv2D(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, ResolveDepthwiseConv2D(op));
  op.outputs[0].type = op.inputs[0].type;
  op.outputs[0].shape =
      Shape({shape.batch, shape.window.y.output, shape.window.x.output, shape.channels_out});
  const auto& params = op.params.as<DepthwiseConv2DParams>();
  if (op.inputs[1].type == kF32) return MakeFloatTail(op, params.activation).status();
  if (op.inputs[0].type == kF32) {
    if (shape.channels_out > 1 && !op.inputs[1].quantization.per_channel()) {
      return Unsupported("does not take float32 channels with one scale for all 8-bit filters");
    }
    return MakeHybridTail(op, params.activation, shape.channels_out).status();
  }
  FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(op, false));
  if (op.inputs[0].type == kU8) FUSELITE_RETURN_IF_ERROR(CheckBiasScale(op));
  return CheckQuantizedTail(op, params.activation, DataType::kNone, shape.channels_out);
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanDepthwiseConv2DHighway},
    {"reference", BuildDepthwiseConv2DReference},
};

}  // namespace

Result<DepthwiseConv2DShape> ResolveDepthwiseConv2D(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckImageAndFilter(op));
  const Shape& in = op.inputs[0].shape;
  const Shape& filter = op.inputs[1].shape;
  if (filter[0] != 1) return InvalidArgument("filter ", filter, " must begin with 1");
  DepthwiseConv2DShape shape;
  shape.batch = in[0];
  shape.channels_in = in[3];
  shape.channels_out = filter[3];
  if (in[3] <= 0 || filter[3] <= 0 || filter[3] % in[3] != 0) {
    return InvalidArgument(filter[3], " filters do not divide among ", in[3], " channels");
  }
  shape.multiplier = shape.channels_out / shape.channels_in;
  FUSELITE_RETURN_IF_ERROR(CheckBias(op, shape.channels_out));
  FUSELITE_ASSIGN_OR_RETURN(shape.window, ResolveFilterWindow<DepthwiseConv2DParams>(op));
  return shape;
}

const OperatorDef& DepthwiseConv2DOperator() {
  static constexpr OperatorDef kDef = {
      .name = "DEPTHWISE_CONV_2D",
      .builtin_code = tflite::kTfLiteBuiltinDepthwiseConv2d,
      .options_type = 2,
      .max_version = 7,
      .fields = kFields,
      .params_bytes = sizeof(DepthwiseConv2DParams),
      .struct_bytes = sizeof(tflite::TfLiteDepthwiseConvParams),
      .min_inputs = 2,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferDepthwiseConv2D,
      .candidates = kCandidates,
      .product = DescribeDepthwiseConv2DProduct,
      .product_inputs = ProductInputs{},
      .cost =
          [](const OpDescription& op) {
            const Shape& filter = op.inputs[1].shape;
            return static_cast<double>(op.outputs[0].elements()) * filter.elements(1, 3);
          },
      .takes_tail = true,
      .bfloat16_values = true,
      .extra_padding = [](Params& params) -> ExtraPadding& {
        return params.as<DepthwiseConv2DParams>().extra_padding;
      },
      .window = ResolveFilterWindow<DepthwiseConv2DParams>,
      .set_window = SetWindow<DepthwiseConv2DParams>,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
