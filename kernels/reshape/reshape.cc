#include "kernels/reshape/reshape.h"

#include <algorithm>
#include <optional>

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kReshapeFields[] = {
    {"new_shape", FieldKind::kIntList, 0, offsetof(ReshapeParams, new_shape),
     offsetof(tflite::TfLiteReshapeParams, shape),
     offsetof(tflite::TfLiteReshapeParams, num_dimensions)},
};

constexpr Field kSqueezeFields[] = {
    {"squeeze_dims", FieldKind::kIntList, 0, offsetof(SqueezeParams, squeeze_dims),
     offsetof(tflite::TfLiteSqueezeParams, squeeze_dims),
     offsetof(tflite::TfLiteSqueezeParams, num_squeeze_dims)},
};

Result<std::vector<int64_t>> RequestedShape(const OpDescription& op) {
  // As the host does it, an operand that is no vector of int32 leaves the word to the parameters.
  if (op.has_input(1) && op.inputs[1].shape.rank() == 1 && op.inputs[1].type == DataType::kInt32) {
    return ReadIntegers(op.inputs[1], "the shape", IntegerTypes::kInt32);
  }
  const IntList& list = op.params.as<ReshapeParams>().new_shape;
  if (list.count == 1 && list.values[0] == 0) return std::vector<int64_t>();
  return std::vector<int64_t>(list.values, list.values + list.count);
}

// The product of the dimensions that are not 0; nullopt where it overflows.
std::optional<int64_t> NonZeroProduct(std::span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) {
    if (d != 0 && __builtin_mul_overflow(product, d, &product)) return std::nullopt;
  }
  return product;
}

// What stands for -1 where the other dimensions are `known`. Of tensors without elements, where any
// size fits, it is the one that makes the products without the zeros equal.
Result<int64_t> RemainingSize(const Shape& in, const std::vector<int64_t>& known) {
  const std::vector<int64_t> in_dims(in.dims().begin(), in.dims().end());
  const std::optional<int64_t> from = NonZeroProduct(in_dims), to = NonZeroProduct(known);
  if (!from || !to) return InvalidArgument("the shape is too large");
  const bool zeros = std::ranges::find(known, 0) != known.end();
  return in.elements() == 0 && !zeros ? 0 : *from / *to;
}

Status InferReshape(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  FUSELITE_RETURN_IF_ERROR(RequireSized(in.type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, in.type));
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> dims, RequestedShape(op));
  const auto rest = std::ranges::find(dims, -1);
  if (rest != dims.end()) {
    *rest = 1;
    if (std::ranges::count(dims, -1) > 0) {
      return InvalidArgument("the shape has more than one -1");
    }
    FUSELITE_ASSIGN_OR_RETURN(*rest, RemainingSize(in.shape, dims));
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  if (shape.elements() != in.elements()) {
    return InvalidArgument("cannot reshape ", in.shape, " to ", shape);
  }
  return SetOutput(op, 0, in.type, shape);
}

Status InferSqueeze(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const IntList& list = op.params.as<SqueezeParams>().squeeze_dims;
  if (in.shape.rank() > 8) return InvalidArgument("rank ", in.shape.rank(), ", expected 8 at most");
  bool drop[Shape::kMaxRank] = {};
  for (int i = 0; i < list.count; ++i) {
    FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(list.values[i], in.shape.rank()));
    if (in.shape[axis] != 1) {
      return InvalidArgument("dimension ", axis, " of ", in.shape, " is not 1");
    }
    drop[axis] = true;
  }
  Shape shape;
  for (int d = 0; d < in.shape.rank(); ++d) {
    if (list.count == 0 ? in.shape[d] != 1 : !drop[d]) shape.push_back(in.shape[d]);
  }
  FUSELITE_RETURN_IF_ERROR(RequireSized(in.type));
  return SetOutput(op, 0, in.type, shape);
}

Status InferExpandDims(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() == Shape::kMaxRank) {
    return Unsupported("the result's rank exceeds ", Shape::kMaxRank);
  }
  FUSELITE_RETURN_IF_ERROR(RequireSized(in.type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, in.type));
  FUSELITE_RETURN_IF_ERROR(RequireKeptQuantization(in, op.outputs[0]));
  FUSELITE_ASSIGN_OR_RETURN(const int64_t value,
                            ReadInteger(op.inputs[1], "the axis", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(value, in.shape.rank() + 1));
  Shape shape;
  for (int d = 0; d <= in.shape.rank(); ++d) {
    if (d == axis) shape.push_back(1);
    if (d < in.shape.rank()) shape.push_back(in.shape[d]);
  }
  return SetOutput(op, 0, in.type, shape);
}

Status InferBitcast(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const DataType to = op.outputs[0].type;
  FUSELITE_ASSIGN_OR_RETURN(const int from_bytes, ElementBytes(in.type));
  FUSELITE_ASSIGN_OR_RETURN(const int to_bytes, ElementBytes(to));
  std::vector<int64_t> dims(in.shape.dims().begin(), in.shape.dims().end());
  if (from_bytes > to_bytes) {
    dims.push_back(from_bytes / to_bytes);
  } else if (from_bytes < to_bytes) {
    if (dims.empty() || dims.back() != to_bytes / from_bytes) {
      return InvalidArgument("the last dimension of ", in.shape, " does not fill a ",
                             DataTypeName(to));
    }
    dims.pop_back();
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, to, shape);
}

// Whoever reads a model has made sparse constants dense: what is left is a copy.
Status InferDensify(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  return SetOutput(op, 0, in.type, in.shape);
}

constexpr TypeRow kDensifyTypes[] = {
    {{DataType::kFloat32}, DataType::kFloat32},
    {{DataType::kFloat16}, DataType::kFloat16},
    {{DataType::kInt8}, DataType::kInt8},
};

}  // namespace

Result<Movement> PlanBitcast(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  CopyPart part;
  part.copy.element_bytes = 1;
  part.copy.Add(static_cast<int64_t>(op.inputs[0].bytes()), 1, 1);
  return Movement{{part}};
}

Result<Movement> PlanReshape(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  CopyPart part = MakePart(op, 0, 0);
  const int64_t element = part.copy.element_bytes;
  const TensorInfo& rows = IsDense(in) ? out : in;
  const int64_t length = rows.shape.rank() ? rows.shape.dim(-1) : 1;
  if (!IsDense(in) && !IsDense(out) && length != out.shape.dim(-1)) {
    return Unsupported("rows of both operands are pitched and differ in length");
  }
  if (length > 0) {
    part.copy.Add(rows.elements() / length, element * (IsDense(in) ? length : in.pitch()),
                  element * (IsDense(out) ? length : out.pitch()));
    part.copy.Add(length, element, element);
  } else {
    part.copy.Add(0, 0, 0);
  }
  return Movement{{part}};
}

const OperatorDef& ReshapeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "RESHAPE",
      .builtin_code = tflite::kTfLiteBuiltinReshape,
      .options_type = 17,
      .max_version = 1,
      .fields = kReshapeFields,
      .params_bytes = sizeof(ReshapeParams),
      .struct_bytes = sizeof(tflite::TfLiteReshapeParams),
      .min_inputs = 1,
      .max_inputs = 2,
      .limits = "any type but string",
      .infer = InferReshape,
      .candidates = kMovementCandidates<PlanReshape>,
      .cost = MovementCost,
      .selects = true,
      .reshapes = true,
      .places = PlanReshape,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

const OperatorDef& DensifyOperator() {
  static constexpr OperatorDef kDef = {
      .name = "DENSIFY",
      .builtin_code = tflite::kTfLiteBuiltinDensify,
      .options_type = 99,
      .max_version = 1,
      .types = kDensifyTypes,
      .limits = "run-time operands: none",
      .infer = InferDensify,
      .candidates = kMovementCandidates<PlanReshape>,
      .cost = MovementCost,
      .reshapes = true,
  };
  return kDef;
}

const OperatorDef& SqueezeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SQUEEZE",
      .builtin_code = tflite::kTfLiteBuiltinSqueeze,
      .options_type = 30,
      .max_version = 2,
      .fields = kSqueezeFields,
      .params_bytes = sizeof(SqueezeParams),
      .struct_bytes = sizeof(tflite::TfLiteSqueezeParams),
      .limits = "rank <= 8; any type but string",
      .infer = InferSqueeze,
      .candidates = kMovementCandidates<PlanReshape>,
      .cost = MovementCost,
      .selects = true,
      .reshapes = true,
      .places = PlanReshape,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

const OperatorDef& ExpandDimsOperator() {
  static constexpr OperatorDef kDef = {
      .name = "EXPAND_DIMS",
      .builtin_code = tflite::kTfLiteBuiltinExpandDims,
      .options_type = 52,
      .max_version = 1,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "rank 0 to 15; any type but string",
      .infer = InferExpandDims,
      .candidates = kMovementCandidates<PlanReshape>,
      .cost = MovementCost,
      .selects = true,
      .reshapes = true,
      .places = PlanReshape,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

const OperatorDef& BitcastOperator() {
  static constexpr OperatorDef kDef = {
      .name = "BITCAST",
      .builtin_code = tflite::kTfLiteBuiltinBitcast,
      .options_type = 124,
      .limits = "types of 8 bits or more",
      .infer = InferBitcast,
      .candidates = kMovementCandidates<PlanBitcast>,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
