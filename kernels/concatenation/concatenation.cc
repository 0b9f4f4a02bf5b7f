#include "kernels/concatenation/concatenation.h"

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kConcatenationFields[] = {
    {"axis", FieldKind::kInt32, 0, offsetof(ConcatenationParams, axis),
     offsetof(tflite::TfLiteConcatenationParams, axis)},
    {"fused_activation_function", FieldKind::kActivation, 1,
     offsetof(ConcatenationParams, activation),
     offsetof(tflite::TfLiteConcatenationParams, activation)},
};

constexpr Field kPackFields[] = {
    {"values_count", FieldKind::kInt32, 0, offsetof(PackParams, values_count),
     offsetof(tflite::TfLitePackParams, values_count)},
    {"axis", FieldKind::kInt32, 1, offsetof(PackParams, axis),
     offsetof(tflite::TfLitePackParams, axis)},
};

// The host has kernels for these only.
constexpr std::span<const TypeRow> kConcatenationTypes =
    kAlikeRows<DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16, DataType::kUInt8,
               DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64,
               DataType::kBool, DataType::kUInt32, DataType::kInt4>;
constexpr TypeRow kPackTypes[] = {
    kAlike<DataType::kFloat32>, kAlike<DataType::kInt32>, kAlike<DataType::kInt64>,
    kAlike<DataType::kInt16>,   kAlike<DataType::kInt8>,  kAlike<DataType::kUInt8>,
    kAlike<DataType::kUInt32>,
};

bool SameQuantization(const TensorInfo& a, const TensorInfo& b) {
  return a.quantization.scale() == b.quantization.scale() &&
         a.quantization.zero_point() == b.quantization.zero_point();
}

Status CheckQuantization(const OpDescription& op) {
  const TensorInfo& out = op.outputs[0];
  for (const TensorInfo& in : op.inputs) {
    if (in.type == DataType::kInt8 && !SameQuantization(in, out)) {
      return InvalidArgument("int8 inputs must have the output's scale and zero point");
    }
    if (in.type == DataType::kUInt8 && !SameQuantization(in, out) &&
        (in.quantization.empty() || out.quantization.scale() <= 0)) {
      return InvalidArgument("uint8 inputs of another scale need one on both sides");
    }
    if (in.type == DataType::kInt16 &&
        (in.quantization.zero_point() != 0 || out.quantization.zero_point() != 0)) {
      return InvalidArgument("the zero points of int16 operands must be 0");
    }
  }
  return Status();
}

Status InferConcatenation(OpDescription& op) {
  const TensorInfo& first = op.inputs[0];
  const auto& params = op.params.as<ConcatenationParams>();
  if (params.activation != Activation::kNone)
    return Unsupported("does not take a fused activation");
  FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(params.axis, first.shape.rank()));
  int64_t total = 0;
  for (const TensorInfo& in : op.inputs) {
    Shape like_first = in.shape;
    if (in.shape.rank() == first.shape.rank()) like_first.set(axis, first.shape[axis]);
    if (in.type != first.type || like_first != first.shape) {
      return InvalidArgument("inputs ", first.shape, " and ", in.shape,
                             " differ in more than dimension ", axis);
    }
    total += in.shape[axis];
  }
  std::vector<int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  dims[axis] = total;
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  FUSELITE_RETURN_IF_ERROR(RequireSized(first.type));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, first.type, shape));
  return CheckQuantization(op);
}

Status InferPack(OpDescription& op) {
  const TensorInfo& first = op.inputs[0];
  const auto& params = op.params.as<PackParams>();
  if (params.values_count != static_cast<int>(op.inputs.size())) {
    return InvalidArgument("values_count is ", params.values_count, " with ", op.inputs.size(),
                           " inputs");
  }
  FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(params.axis, first.shape.rank() + 1));
  for (const TensorInfo& in : op.inputs) {
    if (in.type != first.type || in.shape != first.shape) {
      return InvalidArgument("inputs ", first.shape, " and ", in.shape, " differ");
    }
  }
  std::vector<int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  dims.insert(dims.begin() + axis, static_cast<int64_t>(op.inputs.size()));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  FUSELITE_RETURN_IF_ERROR(ElementBytes(first.type).status());
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, first.type, shape));
  for (const TensorInfo& in : op.inputs) {
    FUSELITE_RETURN_IF_ERROR(RequireSameQuantization(in, op.outputs[0]));
  }
  return Status();
}

// Each input as a box of the output, one after the other along `axis`; `added` where the inputs
// lack that dimension.
Movement SideBySide(const OpDescription& op, int axis, bool added) {
  Movement movement;
  const auto to = ByteStrides(op.outputs[0]);
  int64_t position = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorInfo& in = op.inputs[i];
    const auto from = ByteStrides(in);
    CopyPart part = MakePart(op, static_cast<int>(i), 0);
    part.copy.out_offset = position * to[axis];
    for (int d = 0; d < in.shape.rank(); ++d) {
      part.copy.Add(in.shape[d], from[d], to[d + (added && d >= axis ? 1 : 0)]);
    }
    position += added ? 1 : in.shape[axis];
    movement.parts.push_back(part);
  }
  return movement;
}

constexpr Candidate kConcatenationCandidates[] = {
    {"highway", BuildConcatenationHighway},
    {"reference", BuildConcatenationReference},
};

}  // namespace

Result<Movement> PlanConcatenation(const OpDescription& op) {
  for (const TensorInfo& in : op.inputs) {
    if (in.type == DataType::kUInt8 && !SameQuantization(in, op.outputs[0])) {
      return Unsupported("uint8 inputs of another scale are requantized");
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(op.params.as<ConcatenationParams>().axis,
                                                        op.outputs[0].shape.rank()));
  return SideBySide(op, axis, false);
}

Result<Movement> PlanPack(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(
      const int axis, ResolveAxis(op.params.as<PackParams>().axis, op.outputs[0].shape.rank()));
  return SideBySide(op, axis, true);
}

const OperatorDef& ConcatenationOperator() {
  static constexpr OperatorDef kDef = {
      .name = "CONCATENATION",
      .builtin_code = tflite::kTfLiteBuiltinConcatenation,
      .options_type = 10,
      .max_version = 7,
      .fields = kConcatenationFields,
      .params_bytes = sizeof(ConcatenationParams),
      .struct_bytes = sizeof(tflite::TfLiteConcatenationParams),
      .min_inputs = 1,
      .max_inputs = -1,
      .types = kConcatenationTypes,
      .limits = "rank 1 or more; no fused activation",
      .infer = InferConcatenation,
      .candidates = kConcatenationCandidates,
      .cost = MovementCost,
      .selects = true,
      .places = PlanConcatenation,
      .places_inputs = true,
  };
  return kDef;
}

const OperatorDef& PackOperator() {
  static constexpr OperatorDef kDef = {
      .name = "PACK",
      .builtin_code = tflite::kTfLiteBuiltinPack,
      .options_type = 59,
      .max_version = 5,
      .fields = kPackFields,
      .params_bytes = sizeof(PackParams),
      .struct_bytes = sizeof(tflite::TfLitePackParams),
      .min_inputs = 1,
      .max_inputs = -1,
      .types = kPackTypes,
      .limits = "rank 0 to 15",
      .infer = InferPack,
      .candidates = kMovementCandidates<PlanPack>,
      .cost = MovementCost,
      .selects = true,
      .places = PlanPack,
      .places_inputs = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
