#include "kernels/conv2d/conv2d.h"

#include <algorithm>

#include "kernels/filter_operands.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/product/description.h"
#include "kernels/winograd/winograd.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"padding", FieldKind::kPadding, 0, offsetof(Conv2DParams, padding),
     offsetof(tflite::TfLiteConvParams, padding)},
    {"stride_w", FieldKind::kInt32, 1, offsetof(Conv2DParams, stride_w),
     offsetof(tflite::TfLiteConvParams, stride_width)},
    {"stride_h", FieldKind::kInt32, 2, offsetof(Conv2DParams, stride_h),
     offsetof(tflite::TfLiteConvParams, stride_height)},
    {"fused_activation_function", FieldKind::kActivation, 3, offsetof(Conv2DParams, activation),
     offsetof(tflite::TfLiteConvParams, activation)},
    {.name = "dilation_w_factor",
     .kind = FieldKind::kInt32,
     .id = 4,
     .offset = offsetof(Conv2DParams, dilation_w),
     .struct_offset = offsetof(tflite::TfLiteConvParams, dilation_width_factor),
     .default_value = 1},
    {.name = "dilation_h_factor",
     .kind = FieldKind::kInt32,
     .id = 5,
     .offset = offsetof(Conv2DParams, dilation_h),
     .struct_offset = offsetof(tflite::TfLiteConvParams, dilation_height_factor),
     .default_value = 1},
    {.name = "quantized_bias_type",
     .kind = FieldKind::kDataType,
     .id = 6,
     .offset = offsetof(Conv2DParams, quantized_bias_type),
     .struct_offset = offsetof(tflite::TfLiteConvParams, quantized_bias_type),
     .since_version = 8},
};

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8, kU8 = DataType::kUInt8, kI16 = DataType::kInt16;
constexpr DataType kI4 = DataType::kInt4, kI32 = DataType::kInt32, kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32},
                              {{kI8, kI8, kI32}, kI8},
                              {{kI8, kI4, kI32}, kI8},
                              {{kU8, kU8, kI32}, kU8},
                              {{kI16, kI8, kI64}, kI16},
                              {{kI16, kI8, kI32}, kI16},
                              {{kI16, kI4, kI64}, kI16},
                              {{kI16, kI4, kI32}, kI16},
                              {{kF32, kI8, kF32}, kF32},
                              {{kF32, kI4, kF32}, kF32},
                              {{kF32, DataType::kInt2, kF32}, kF32}};

Status InferConv2D(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  op.outputs[0].type = op.inputs[0].type;
  op.outputs[0].shape =
      Shape({shape.batch, shape.window.y.output, shape.window.x.output, shape.channels_out});
  const auto& params = op.params.as<Conv2DParams>();
  if (op.inputs[1].type == kF32) return MakeFloatTail(op, params.activation).status();
  if (op.inputs[0].type == kF32) return MakeConv2DHybridTail(op, shape).status();
  FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(op, false));
  if (op.inputs[0].type == kU8) FUSELITE_RETURN_IF_ERROR(CheckBiasScale(op));
  FUSELITE_RETURN_IF_ERROR(CheckBiasHint(op, params.quantized_bias_type));
  return CheckQuantizedTail(op, params.activation, params.quantized_bias_type, shape.channels_out);
}

Result<KernelPlan> PlanConv2DHighway(const OpDescription& op, const PlanContext& context) {
  if (ReadsFiltersUnpacked(op)) return OwnPlan(BuildConv2DUnpacked(op, context.isa));
  return PlanHighwayProduct(op, context);
}

constexpr Candidate kCandidates[] = {
    {"highway winograd", PlanHighwayWinograd},
    {"highway", PlanConv2DHighway},
    {"reference", BuildConv2DReference},
};

}  // namespace

bool Conv2DHasSeveralScales(const OpDescription& op, const Conv2DShape& shape) {
  const ChannelValues<float>& scales = op.inputs[1].quantization.scales;
  return shape.groups != 1 ||
         std::ranges::any_of(scales, [&](float scale) { return scale != scales[0]; });
}

Result<HybridTail> MakeConv2DHybridTail(const OpDescription& op, const Conv2DShape& shape) {
  if (shape.groups != 1 && !op.inputs[1].quantization.per_channel()) {
    return Unsupported(
        "does not take groups of float32 channels with one scale for all 8-bit filters");
  }
  FUSELITE_ASSIGN_OR_RETURN(
      HybridTail tail,
      MakeHybridTail(op, op.params.as<Conv2DParams>().activation, shape.channels_out));
  tail.weights_first = Conv2DHasSeveralScales(op, shape);
  return tail;
}

Result<Conv2DShape> ResolveConv2D(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckImageAndFilter(op));
  const Shape& in = op.inputs[0].shape;
  const Shape& filter = op.inputs[1].shape;
  Conv2DShape shape;
  shape.batch = in[0];
  shape.channels_in = in[3];
  shape.channels_out = filter[0];
  shape.group_in = filter[3];
  if (shape.group_in <= 0 || shape.channels_in % shape.group_in != 0 || shape.channels_in == 0) {
    return InvalidArgument("the filter takes ", filter[3], " channels, the input has ", in[3]);
  }
  shape.groups = shape.channels_in / shape.group_in;
  if (shape.channels_out <= 0 || shape.channels_out % shape.groups != 0) {
    return InvalidArgument(shape.channels_out, " filters do not divide into ", shape.groups,
                           " groups");
  }
  shape.group_out = shape.channels_out / shape.groups;
  FUSELITE_RETURN_IF_ERROR(CheckBias(op, shape.channels_out));
  FUSELITE_ASSIGN_OR_RETURN(shape.window, ResolveFilterWindow<Conv2DParams>(op));
  return shape;
}

const OperatorDef& Conv2DOperator() {
  static constexpr OperatorDef kDef = {
      .name = "CONV_2D",
      .builtin_code = tflite::kTfLiteBuiltinConv2d,
      .options_type = 1,
      .max_version = 8,
      .fields = kFields,
      .params_bytes = sizeof(Conv2DParams),
      .struct_bytes = sizeof(tflite::TfLiteConvParams),
      .min_inputs = 2,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferConv2D,
      .candidates = kCandidates,
      .product = DescribeConv2DProduct,
      .product_inputs = ProductInputs{},
      .reads_unpacked = ReadsFiltersUnpacked,
      .cost =
          [](const OpDescription& op) {
            const Shape& filter = op.inputs[1].shape;
            return static_cast<double>(op.outputs[0].elements()) * filter.elements(1, 4);
          },
      .takes_tail = true,
      .bfloat16_values = true,
      .extra_padding = [](Params& params) -> ExtraPadding& {
        return params.as<Conv2DParams>().extra_padding;
      },
      .window = ResolveFilterWindow<Conv2DParams>,
      .set_window = SetWindow<Conv2DParams>,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
