#include "kernels/fully_connected/fully_connected.h"

#include "kernels/filter_operands.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/product/description.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0,
     offsetof(FullyConnectedParams, activation),
     offsetof(tflite::TfLiteFullyConnectedParams, activation)},
    {"weights_format", FieldKind::kEnum8, 1, offsetof(FullyConnectedParams, weights_format),
     offsetof(tflite::TfLiteFullyConnectedParams, weights_format)},
    {"keep_num_dims", FieldKind::kBool, 2, offsetof(FullyConnectedParams, keep_num_dims),
     offsetof(tflite::TfLiteFullyConnectedParams, keep_num_dims)},
    {.name = "asymmetric_quantize_inputs",
     .kind = FieldKind::kBool,
     .id = 3,
     .offset = offsetof(FullyConnectedParams, asymmetric_quantize_inputs),
     .struct_offset = offsetof(tflite::TfLiteFullyConnectedParams, asymmetric_quantize_inputs),
     .since_version = 9},
    {.name = "quantized_bias_type",
     .kind = FieldKind::kDataType,
     .id = 4,
     .offset = offsetof(FullyConnectedParams, quantized_bias_type),
     .struct_offset = offsetof(tflite::TfLiteFullyConnectedParams, quantized_bias_type),
     .since_version = 11},
};

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8, kU8 = DataType::kUInt8, kI16 = DataType::kInt16;
constexpr DataType kI2 = DataType::kInt2, kI4 = DataType::kInt4, kI32 = DataType::kInt32,
                   kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {
    {{kF32, kF32, kF32}, kF32}, {{kI8, kI8, kI32}, kI8},   {{kI8, kI4, kI32}, kI8},
    {{kU8, kU8, kI32}, kU8},    {{kI16, kI8, kI64}, kI16}, {{kI16, kI8, kI32}, kI16},
    {{kI16, kI4, kI64}, kI16},  {{kI16, kI4, kI32}, kI16}, {{kI16, kI16, kI64}, kI16},
    {{kI16, kI16, kI32}, kI16}, {{kU8, kU8, kI32}, kI16},  {{kF32, kI8, kF32}, kF32},
    {{kF32, kI4, kF32}, kF32},  {{kI8, kI2, kI32}, kI8},   {{kI16, kI2, kI64}, kI16},
    {{kI16, kI2, kI32}, kI16},  {{kF32, kI2, kF32}, kF32}};

// What TFLite's kernel would read as something else.
Status CheckBiasType(const OpDescription& op) {
  const TensorInfo& x = op.inputs[0];
  if (x.type == kU8 && op.outputs[0].type == kI16 && !op.has_input(2)) {
    return Unsupported("does not take uint8 to int16 without a bias");
  }
  if (op.inputs[1].type == kI16 && op.has_input(2) && op.inputs[2].type == kI64 &&
      op.params.as<FullyConnectedParams>().quantized_bias_type != kI64) {
    return Unsupported("int16 weights with an int64 bias that quantized_bias_type does not name");
  }
  return Status();
}

Status InferFullyConnected(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  FUSELITE_RETURN_IF_ERROR(CheckBiasType(op));
  SetFullyConnectedOutput(op, shape);
  const auto& params = op.params.as<FullyConnectedParams>();
  if (op.inputs[1].type == kF32) return MakeFloatTail(op, params.activation).status();
  if (op.inputs[0].type == kF32) {
    return MakeHybridTail(op, params.activation, shape.units).status();
  }
  FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(op, true));
  if (!op.inputs[1].quantization.per_channel()) FUSELITE_RETURN_IF_ERROR(CheckBiasScale(op));
  FUSELITE_RETURN_IF_ERROR(CheckBiasHint(op, params.quantized_bias_type));
  return CheckQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units);
}

constexpr Candidate kCandidates[] = {
    {"few rows", PlanFullyConnectedFewRows},
    {"highway", PlanFullyConnectedHighway},
    {"reference", BuildFullyConnectedReference},
};

}  // namespace

Shape FullyConnectedOutput(const OpDescription& op, int64_t rows, int32_t units) {
  if (!op.params.as<FullyConnectedParams>().keep_num_dims) {
    return Shape({static_cast<int32_t>(rows), units});
  }
  Shape output = op.inputs[0].shape;
  output.set(output.rank() - 1, units);
  return output;
}

Result<FullyConnectedShape> ResolveFullyConnected(const OpDescription& op) {
  const auto format = op.params.as<FullyConnectedParams>().weights_format;
  if (format != 0)
    return Unsupported("does not take weights in format ", format, ", expected 0 (row-major)");
  return ResolveRows(op);
}

Result<FullyConnectedShape> ResolveRows(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckFilterIsDense(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  const Shape& in = op.inputs[0].shape;
  const Shape& weights = op.inputs[1].shape;
  if (in.rank() < 1) return InvalidArgument("a scalar input");
  if (weights.rank() != 2 || weights[0] <= 0 || weights[1] <= 0) {
    return InvalidArgument("weights ", weights, " must be a matrix with elements");
  }
  FullyConnectedShape shape{.depth = weights[1], .units = weights[0]};
  if (in.elements() % shape.depth != 0) {
    return InvalidArgument("input ", in, " does not divide into rows of ", shape.depth);
  }
  if (params.keep_num_dims && in.dim(-1) != shape.depth) {
    return InvalidArgument("input ", in, " with weights ", weights, " and kept dimensions");
  }
  if (op.inputs[0].row_pitch != 0 && in.dim(-1) != shape.depth) {
    return Unsupported("does not take pitched rows of ", in.dim(-1), " with weights for ",
                       shape.depth);
  }
  shape.rows = in.elements() / shape.depth;
  if (shape.rows > INT32_MAX) return Unsupported(shape.rows, " rows are too many");
  FUSELITE_RETURN_IF_ERROR(CheckBias(op, shape.units));
  return shape;
}

void SetFullyConnectedOutput(OpDescription& op, const FullyConnectedShape& shape) {
  TensorInfo& output = op.outputs[0];
  if (output.type == DataType::kNone) output.type = op.inputs[0].type;
  output.shape = FullyConnectedOutput(op, shape.rows, shape.units);
}

const OperatorDef& FullyConnectedOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FULLY_CONNECTED",
      .builtin_code = tflite::kTfLiteBuiltinFullyConnected,
      .options_type = 8,
      .max_version = 14,
      .fields = kFields,
      .params_bytes = sizeof(FullyConnectedParams),
      .struct_bytes = sizeof(tflite::TfLiteFullyConnectedParams),
      .min_inputs = 2,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 1 or more; shuffled weights are FUSELITE_SHUFFLED_FULLY_CONNECTED",
      .infer = InferFullyConnected,
      .candidates = kCandidates,
      .product = DescribeFullyConnectedProduct,
      .product_inputs = ProductInputs{.scaling = SumScaling::kReal},
      .reads_unpacked = ReadsWeightsUnpacked,
      .cost =
          [](const OpDescription& op) {
            return static_cast<double>(op.inputs[0].elements()) * op.inputs[1].shape[0];
          },
      .takes_tail = true,
      .bfloat16_values = true,
      .samples = SampleRule::kApartByRows,
  };
  return kDef;
}

}  // namespace fuselite::kernels
