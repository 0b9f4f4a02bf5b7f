#include "kernels/generate/generate.h"

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kShapeFields[] = {
    {"out_type", FieldKind::kDataType, 0, offsetof(ShapeParams, out_type),
     offsetof(tflite::TfLiteShapeParams, out_type), -1, 1, 1},
};

Status InferShape(OpDescription& op) {
  const DataType type = op.params.as<ShapeParams>().out_type;
  if (type != DataType::kInt32 && type != DataType::kInt64) {
    return InvalidArgument("the result's type is ", DataTypeName(type), ", not int32 or int64");
  }
  return SetOutput(op, 0, type, Shape{op.inputs[0].shape.rank()});
}

Status InferRank(OpDescription& op) { return SetOutput(op, 0, DataType::kInt32, Shape()); }

Status InferFill(OpDescription& op) {
  const TensorInfo& value = op.inputs[1];
  if (op.inputs[0].shape.rank() != 1) return InvalidArgument("the dimensions are no vector");
  if (value.elements() != 1)
    return InvalidArgument("the value has ", value.elements(), " elements");
  FUSELITE_RETURN_IF_ERROR(ElementBytes(value.type).status());
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(value.type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, value.type));
  FUSELITE_RETURN_IF_ERROR(RequireKeptQuantization(value, op.outputs[0]));
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[0], "the dimensions", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, value.type, shape);
}

constexpr TypeRow kZerosLikeTypes[] = {
    {{DataType::kFloat32}, DataType::kFloat32},
    {{DataType::kInt32}, DataType::kInt32},
    {{DataType::kInt64}, DataType::kInt64},
};

Status InferZerosLike(OpDescription& op) {
  return SetOutput(op, 0, op.inputs[0].type, op.inputs[0].shape);
}

CopyPart Everywhere(const OpDescription& op, int input) {
  CopyPart part = MakePart(op, input, 0);
  const auto to = ByteStrides(op.outputs[0]);
  for (int d = 0; d < op.outputs[0].shape.rank(); ++d) {
    part.copy.Add(op.outputs[0].shape[d], 0, to[d]);
  }
  return part;
}

constexpr Candidate kShapeCandidates[] = {{"reference", BuildShapeValue}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildShapeValue(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  const Shape& in = op.inputs[0].shape;
  const bool rank = op.outputs[0].shape.rank() == 0;
  return MakeKernel(rank ? "rank" : "shape", {},
                    [in, rank, wide = op.outputs[0].type == DataType::kInt64](
                        const KernelArgs& args, int64_t, int64_t) {
                      if (rank) {
                        *static_cast<int32_t*>(args.outputs[0]) = in.rank();
                        return;
                      }
                      for (int d = 0; d < in.rank(); ++d) {
                        if (wide) {
                          static_cast<int64_t*>(args.outputs[0])[d] = in[d];
                        } else {
                          static_cast<int32_t*>(args.outputs[0])[d] = in[d];
                        }
                      }
                    });
}

Result<Movement> PlanFill(const OpDescription& op) { return Movement{{Everywhere(op, 1)}}; }

Result<Movement> PlanZerosLike(const OpDescription& op) {
  return Movement{{Everywhere(op, CopyPart::kConstant)}};
}

const OperatorDef& ShapeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SHAPE",
      .builtin_code = tflite::kTfLiteBuiltinShape,
      .options_type = 55,
      .max_version = 1,
      .fields = kShapeFields,
      .params_bytes = sizeof(ShapeParams),
      .struct_bytes = sizeof(tflite::TfLiteShapeParams),
      .limits = "any type",
      .infer = InferShape,
      .candidates = kShapeCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

const OperatorDef& RankOperator() {
  static constexpr OperatorDef kDef = {
      .name = "RANK",
      .builtin_code = tflite::kTfLiteBuiltinRank,
      .options_type = 86,
      .max_version = 1,
      .limits = "any type",
      .infer = InferRank,
      .candidates = kShapeCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

const OperatorDef& FillOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FILL",
      .builtin_code = tflite::kTfLiteBuiltinFill,
      .options_type = 68,
      .max_version = 5,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "rank 1; any type of 8 to 64 bits",
      .infer = InferFill,
      .candidates = kMovementCandidates<PlanFill>,
      .cost = MovementCost,
  };
  return kDef;
}

const OperatorDef& ZerosLikeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "ZEROS_LIKE",
      .builtin_code = tflite::kTfLiteBuiltinZerosLike,
      .options_type = 67,
      .max_version = 1,
      .types = kZerosLikeTypes,
      .infer = InferZerosLike,
      .candidates = kMovementCandidates<PlanZerosLike>,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
