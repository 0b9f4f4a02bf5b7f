#include "kernels/pad/pad.h"

#include <limits>

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

// The host numbers the modes as it does paddings: one higher in its struct than in the file.
constexpr Field kMirrorPadFields[] = {
    {"mode", FieldKind::kPadding, 0, offsetof(MirrorPadParams, mode),
     offsetof(tflite::TfLiteMirrorPaddingParams, mode)},
};

// before[d], after[d] at 2 d and 2 d + 1.
Result<std::vector<int64_t>> ReadPaddings(const OpDescription& op, IntegerTypes types) {
  const int rank = op.inputs[0].shape.rank();
  const Shape& shape = op.inputs[1].shape;
  if (shape.rank() != 2 || shape[0] != rank || shape[1] != 2) {
    return InvalidArgument("paddings ", shape, " do not fit rank ", rank);
  }
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> paddings,
                            ReadIntegers(op.inputs[1], "the padding", types));
  for (int64_t p : paddings) {
    if (p < 0 || p > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("a padding of ", p, " is not possible");
    }
  }
  return paddings;
}

Status SetPadded(OpDescription& op, const std::vector<int64_t>& paddings) {
  const TensorInfo& in = op.inputs[0];
  std::vector<int64_t> dims;
  for (int d = 0; d < in.shape.rank(); ++d) {
    dims.push_back(in.shape[d] + paddings[2 * d] + paddings[2 * d + 1]);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  return SetOutput(op, 0, in.type, shape);
}

// The host has kernels for these only.
constexpr std::span<const TypeRow> kTypes =
    kAlikeRows<DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16, DataType::kUInt8,
               DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64,
               DataType::kBool>;

bool IsQuantizedType(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt16;
}

Status CheckZeroPoint(const TensorInfo& out) {
  if (!IsQuantizedType(out.type)) return Status();
  const int32_t zero = out.quantization.zero_point();
  const int32_t count = 1 << BitWidth(out.type);
  const int32_t low = out.type == DataType::kUInt8 ? 0 : -count / 2;
  if (zero >= low && zero < low + count) return Status();
  return Unsupported("the zero point ", zero, " is not in ", DataTypeName(out.type));
}

Status CheckPaddingValue(const OpDescription& op) {
  const TensorInfo& out = op.outputs[0];
  if (!op.has_input(2)) return CheckZeroPoint(out);
  const TensorInfo& value = op.inputs[2];
  if (value.type != op.inputs[0].type || value.elements() != 1) {
    return InvalidArgument("the padding's value must be one ", DataTypeName(op.inputs[0].type));
  }
  if (IsQuantizedType(value.type) &&
      (value.quantization.zero_point() != out.quantization.zero_point() ||
       value.quantization.scale() != out.quantization.scale())) {
    return InvalidArgument("the padding's value must have the output's scale and zero point");
  }
  return Status();
}

Status InferPad(OpDescription& op) {
  const int rank = op.inputs[0].shape.rank();
  if (rank > 5) return InvalidArgument("rank ", rank, ", expected 5 at most");
  FUSELITE_RETURN_IF_ERROR(CheckPaddingValue(op));
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                            ReadPaddings(op, IntegerTypes::kSigned));
  return SetPadded(op, paddings);
}

// The zero of PAD, as bytes of the element.
std::array<std::byte, 16> ZeroOf(const TensorInfo& info) {
  std::array<std::byte, 16> zero{};
  const int32_t value = IsQuantizedType(info.type) ? info.quantization.zero_point() : 0;
  if (BitWidth(info.type) == 8) zero[0] = static_cast<std::byte>(value);
  const auto wide = static_cast<int16_t>(value);
  if (BitWidth(info.type) == 16) std::memcpy(zero.data(), &wide, sizeof wide);
  return zero;
}

}  // namespace

Result<Movement> PlanPad(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                            ReadPaddings(op, IntegerTypes::kSigned));
  const Shape& in = op.inputs[0].shape;
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  Movement movement;
  CopyPart inside = MakePart(op, 0, 0);
  std::vector<Extent> extents;
  for (int d = 0; d < in.rank(); ++d) {
    extents.push_back({op.outputs[0].shape[d], paddings[2 * d], in[d]});
    inside.copy.out_offset += paddings[2 * d] * to[d];
    inside.copy.Add(in[d], from[d], to[d]);
  }
  movement.parts.push_back(inside);
  CopyPart fill = MakePart(op, op.has_input(2) ? 2 : CopyPart::kConstant, 0);
  fill.constant = ZeroOf(op.outputs[0]);
  FillAround(fill, extents, {to.begin(), to.begin() + in.rank()}, &movement);
  return movement;
}

namespace {

Status InferMirrorPad(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[0].type).status());
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(op.inputs[0].type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, op.inputs[0].type));
  FUSELITE_RETURN_IF_ERROR(RequireKeptQuantization(op.inputs[0], op.outputs[0]));
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                            ReadPaddings(op, IntegerTypes::kInt32Or64));
  const Shape& in = op.inputs[0].shape;
  const bool reflect = op.params.as<MirrorPadParams>().mode == MirrorMode::kReflect;
  for (int d = 0; d < in.rank(); ++d) {
    const int64_t most = reflect ? in[d] - 1 : in[d];
    for (int64_t p : {paddings[2 * d], paddings[2 * d + 1]}) {
      if (p > 0 && p > most) {
        return InvalidArgument("a padding of ", p, " has only ", most, " elements of dimension ", d,
                               " to mirror");
      }
    }
  }
  return SetPadded(op, paddings);
}

// A stretch of one dimension: the border before, the tensor, the border after.
struct Stretch {
  int64_t out, size, in, step;
};

std::vector<Stretch> Stretches(int64_t size, int64_t before, int64_t after, bool reflect) {
  std::vector<Stretch> stretches = {{before, size, 0, 1}};
  const int64_t edge = reflect ? 1 : 0;  // how far the reflection starts from the edge
  if (before > 0) stretches.push_back({0, before, before - 1 + edge, -1});
  if (after > 0) stretches.push_back({before + size, after, size - 1 - edge, -1});
  return stretches;
}

}  // namespace

Result<Movement> PlanMirrorPad(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                            ReadPaddings(op, IntegerTypes::kInt32Or64));
  const Shape& in = op.inputs[0].shape;
  const bool reflect = op.params.as<MirrorPadParams>().mode == MirrorMode::kReflect;
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  Movement movement{{MakePart(op, 0, 0)}};
  // Each dimension multiplies the parts by its stretches.
  for (int d = 0; d < in.rank(); ++d) {
    std::vector<CopyPart> parts;
    for (const Stretch& s : Stretches(in[d], paddings[2 * d], paddings[2 * d + 1], reflect)) {
      for (CopyPart part : movement.parts) {
        part.copy.in_offset += s.in * from[d];
        part.copy.out_offset += s.out * to[d];
        part.copy.Add(s.size, s.step * from[d], to[d]);
        parts.push_back(part);
      }
    }
    movement.parts = std::move(parts);
  }
  return movement;
}

constexpr OperatorDef kPad = {
    .name = "PAD",
    .builtin_code = tflite::kTfLiteBuiltinPad,
    .options_type = 22,
    .max_version = 6,
    .min_inputs = 2,
    .max_inputs = 3,
    .types = kTypes,
    .limits = "rank <= 5",
    .infer = InferPad,
    .candidates = kMovementCandidates<PlanPad>,
    .cost = MovementCost,
    .selects = true,
    .samples = SampleRule::kApart,
};

const OperatorDef& PadOperator() { return kPad; }

// Its third input is the value to pad with, which need not be the zero point.
const OperatorDef& PadV2Operator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = kPad;
    def.name = "PADV2";
    def.builtin_code = tflite::kTfLiteBuiltinPadv2;
    def.options_type = 43;
    def.min_inputs = def.max_inputs = 3;
    def.selects = false;
    return def;
  }();
  return kDef;
}

const OperatorDef& MirrorPadOperator() {
  static constexpr OperatorDef kDef = {
      .name = "MIRROR_PAD",
      .builtin_code = tflite::kTfLiteBuiltinMirrorPad,
      .options_type = 77,
      .max_version = 3,
      .fields = kMirrorPadFields,
      .params_bytes = sizeof(MirrorPadParams),
      .struct_bytes = sizeof(tflite::TfLiteMirrorPaddingParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "any type of 8 to 64 bits",
      .infer = InferMirrorPad,
      .candidates = kMovementCandidates<PlanMirrorPad>,
      .cost = MovementCost,
      .selects = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
