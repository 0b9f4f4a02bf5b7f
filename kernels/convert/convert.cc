#include "kernels/convert/convert.h"

#include <algorithm>
#include <cmath>

#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kF16 = DataType::kFloat16, kI8 = DataType::kInt8,
                   kU8 = DataType::kUInt8, kI16 = DataType::kInt16, kI32 = DataType::kInt32,
                   kI4 = DataType::kInt4, kU4 = DataType::kUInt4;

constexpr Field kCastFields[] = {
    {"in_data_type", FieldKind::kDataType, 0, offsetof(CastParams, in_data_type),
     offsetof(tflite::TfLiteCastParams, in_data_type), -1, 1, 1},
    {"out_data_type", FieldKind::kDataType, 1, offsetof(CastParams, out_data_type),
     offsetof(tflite::TfLiteCastParams, out_data_type), -1, 1, 1},
};

constexpr TypeRow kQuantizeTypes[] = {
    {{kF32}, kI8}, {{kF32}, kU8}, {{kF32}, kI16}, {{kI8}, kI8},   {{kI8}, kU8},  {{kU8}, kI8},
    {{kU8}, kU8},  {{kI16}, kI8}, {{kI16}, kI16}, {{kI16}, kI32}, {{kI32}, kI8}, {{kI32}, kI16},
    {{kI8}, kI16}, {{kU8}, kI16}, {{kF32}, kI4},  {{kF32}, kU4},
};
constexpr TypeRow kDequantizeTypes[] = {
    {{kI8}, kF32},
    {{kU8}, kF32},
    {{kI16}, kF32},
    {{kF16}, kF32},
    {{kI4}, kF32},
    {{kU4}, kF32},
    {{DataType::kInt2}, kF32},
};

bool CastTakes(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat64:
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kBool:
    case DataType::kInt8:
    case DataType::kUInt8:
    case DataType::kInt16:
    case DataType::kUInt16:
    case DataType::kInt32:
    case DataType::kUInt32:
    case DataType::kInt64:
    case DataType::kComplex64: return true;
    default: return false;
  }
}

Status InferCast(OpDescription& op) {
  const DataType from = op.inputs[0].type;
  DataType to = op.outputs[0].type;
  if (to == DataType::kNone) to = op.params.as<CastParams>().out_data_type;
  const bool packed = (IsPacked(from) && to == kF32) || (from == kF32 && IsPacked(to));
  if (!packed && (!CastTakes(from) || !CastTakes(to))) {
    return Unsupported("casts from ", DataTypeName(from), " to ", DataTypeName(to),
                       " are not taken");
  }
  return SetOutput(op, 0, to, op.inputs[0].shape);
}

// Whether scales can be divided by and there is one for each channel or for all.
Status CheckScales(const TensorInfo& info) {
  const Quantization& q = info.quantization;
  if (q.empty()) return Unsupported(DataTypeName(info.type), " without a scale");
  if (q.zero_points.size() != q.scales.size()) return Unsupported("scales lack zero points");
  for (float scale : q.scales) {
    if (!(scale > 0) || !std::isfinite(scale))
      return Unsupported("does not take a scale of ", scale);
  }
  if (!q.per_channel()) return Status();
  if (q.axis < 0 || q.axis >= info.shape.rank() ||
      info.shape[q.axis] != static_cast<int64_t>(q.scales.size())) {
    return InvalidArgument(q.scales.size(), " scales for dimension ", q.axis, " of ", info.shape);
  }
  return Status();
}

Status InferQuantize(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  TensorInfo& out = op.outputs[0];
  if (out.absent()) return InvalidArgument("the output's type is not known");
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, out.type, in.shape));
  FUSELITE_RETURN_IF_ERROR(CheckScales(out));
  if (IsPacked(out.type) && out.quantization.per_channel()) {
    return Unsupported(DataTypeName(out.type), " per channel");
  }
  if (in.type == DataType::kFloat32) return Status();
  FUSELITE_RETURN_IF_ERROR(CheckScales(in));
  if (in.quantization.per_channel() || out.quantization.per_channel()) {
    return Unsupported("does not take requantization per channel");
  }
  if (in.type == kI16 && out.type == kI16 &&
      (in.quantization.zero_point() != 0 || out.quantization.zero_point() != 0)) {
    return InvalidArgument("the zero points of int16 operands must be 0");
  }
  return Status();
}

Status InferDequantize(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.type != DataType::kFloat16) FUSELITE_RETURN_IF_ERROR(CheckScales(in));
  return SetOutput(op, 0, DataType::kFloat32, in.shape);
}

constexpr Candidate kCastCandidates[] = {
    {"highway", BuildCastHighway},
    {"reference", BuildCast},
};
constexpr Candidate kQuantizeCandidates[] = {
    {"highway", BuildQuantizeHighway},
    {"reference", BuildQuantizeReference},
};
constexpr Candidate kDequantizeCandidates[] = {
    {"highway", BuildDequantizeHighway},
    {"reference", BuildDequantizeReference},
};

double ElementsOf(const OpDescription& op) { return static_cast<double>(op.inputs[0].elements()); }

}  // namespace

Status CheckZeroPoints(const Quantization& quantization) {
  constexpr int32_t kMost = 1 << 16;
  for (const int32_t zero : quantization.zero_points) {
    if (zero < -kMost || zero > kMost) return Unsupported("does not take a zero point of ", zero);
  }
  return Status();
}

ChannelOf::ChannelOf(const TensorInfo& info) : inner(1), channels(1) {
  if (!info.quantization.per_channel()) return;
  channels = info.shape[info.quantization.axis];
  inner = std::max<int64_t>(info.shape.elements(info.quantization.axis + 1, info.shape.rank()), 1);
}

Pieces::Pieces(const TensorInfo& in, const TensorInfo& out)
    : in_pitch(in.pitch()), out_pitch(out.pitch()) {
  const int64_t elements = in.elements();
  const bool dense = IsDense(in) && IsDense(out);
  width = dense || in.shape.rank() == 0 ? elements : in.shape.dim(-1);
  size = 16384;
  per_row = (width + size - 1) / size;
  units = width ? elements / width * per_row : 0;
}

const OperatorDef& CastOperator() {
  static constexpr OperatorDef kDef = {
      .name = "CAST",
      .builtin_code = tflite::kTfLiteBuiltinCast,
      .options_type = 37,
      .max_version = 9,
      .fields = kCastFields,
      .params_bytes = sizeof(CastParams),
      .struct_bytes = sizeof(tflite::TfLiteCastParams),
      .limits = "no complex128; int4, uint4 and int2 from and to float32 alone",
      .infer = InferCast,
      .candidates = kCastCandidates,
      .cost = ElementsOf,
  };
  return kDef;
}

const OperatorDef& QuantizeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "QUANTIZE",
      .builtin_code = tflite::kTfLiteBuiltinQuantize,
      .options_type = 89,
      .max_version = 6,
      .types = kQuantizeTypes,
      .infer = InferQuantize,
      .candidates = kQuantizeCandidates,
      .cost = ElementsOf,
      .pointwise = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

const OperatorDef& DequantizeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "DEQUANTIZE",
      .builtin_code = tflite::kTfLiteBuiltinDequantize,
      .options_type = 38,
      .max_version = 9,
      .types = kDequantizeTypes,
      .infer = InferDequantize,
      .candidates = kDequantizeCandidates,
      .cost = ElementsOf,
      .pointwise = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
