#include "kernels/gather/gather.h"

#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kGatherFields[] = {
    {"axis", FieldKind::kInt32, 0, offsetof(GatherParams, axis),
     offsetof(tflite::TfLiteGatherParams, axis)},
    {"batch_dims", FieldKind::kInt32, 1, offsetof(GatherParams, batch_dims),
     offsetof(tflite::TfLiteGatherParams, batch_dims), -1, 5},
};

// The host has kernels for these only.
constexpr std::span<const TypeRow> kGatherTypes =
    kAlikeRows<DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16, DataType::kUInt8,
               DataType::kInt4, DataType::kInt8, DataType::kInt16, DataType::kInt64,
               DataType::kInt32, DataType::kBool>;
constexpr std::span<const TypeRow> kGatherNdTypes =
    kAlikeRows<DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16, DataType::kUInt8,
               DataType::kInt8, DataType::kInt16, DataType::kInt64, DataType::kInt32,
               DataType::kBool>;

Status CheckIndexType(const TensorInfo& indices) {
  if (indices.type == DataType::kInt16 || indices.type == DataType::kInt32 ||
      indices.type == DataType::kInt64) {
    return Status();
  }
  return Unsupported("does not take indices of type ", DataTypeName(indices.type));
}

Status InferGather(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& indices = op.inputs[1];
  auto& params = op.params.as<GatherParams>();
  FUSELITE_RETURN_IF_ERROR(CheckIndexType(indices));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(params.axis, in.shape.rank()));
  const int batch =
      params.batch_dims < 0 ? params.batch_dims + indices.shape.rank() : params.batch_dims;
  if (batch < 0 || batch > axis || batch > indices.shape.rank()) {
    return InvalidArgument(params.batch_dims, " batch dimensions with axis ", axis);
  }
  for (int d = 0; d < batch; ++d) {
    if (in.shape[d] != indices.shape[d]) {
      return InvalidArgument("the batches of ", in.shape, " and ", indices.shape, " differ");
    }
  }
  std::vector<int64_t> dims;
  for (int d = 0; d < axis; ++d) dims.push_back(in.shape[d]);
  for (int d = batch; d < indices.shape.rank(); ++d) dims.push_back(indices.shape[d]);
  for (int d = axis + 1; d < in.shape.rank(); ++d) dims.push_back(in.shape[d]);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  FUSELITE_RETURN_IF_ERROR(RequireSized(in.type));
  if (in.shape.elements(axis + 1, in.shape.rank()) * BitWidth(in.type) % 8 != 0) {
    return Unsupported("slices that share a byte");  // LiteRT's result is not defined
  }
  params = {axis, batch};
  return SetOutput(op, 0, in.type, shape);
}

Status InferGatherNd(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& indices = op.inputs[1];
  FUSELITE_RETURN_IF_ERROR(CheckIndexType(indices));
  const int rank = indices.shape.rank();
  if (rank < 1 || in.shape.rank() < 1) return InvalidArgument("a scalar operand");
  const int32_t depth = indices.shape.dim(-1);
  if (depth > in.shape.rank()) {
    return InvalidArgument(depth, " coordinates for rank ", in.shape.rank());
  }
  std::vector<int64_t> dims;
  for (int d = 0; d < rank - 1; ++d) dims.push_back(indices.shape[d]);
  for (int d = depth; d < in.shape.rank(); ++d) dims.push_back(in.shape[d]);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  return SetOutput(op, 0, in.type, shape);
}

Status InferScatterNd(OpDescription& op) {
  const TensorInfo& indices = op.inputs[0];
  const TensorInfo& updates = op.inputs[1];
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[2], "the shape", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  const int outer = indices.shape.rank() - 1;
  if (outer < 0 || op.inputs[2].shape.rank() != 1) return InvalidArgument("a scalar operand");
  const int32_t depth = indices.shape.dim(-1);
  Shape expected;
  if (depth > shape.rank() || outer + shape.rank() - depth > Shape::kMaxRank) {
    return InvalidArgument(depth, " coordinates for rank ", shape.rank());
  }
  for (int d = 0; d < outer; ++d) expected.push_back(indices.shape[d]);
  for (int d = depth; d < shape.rank(); ++d) expected.push_back(shape[d]);
  if (updates.shape != expected) {
    return InvalidArgument("updates ", updates.shape, ", expected ", expected);
  }
  return SetOutput(op, 0, updates.type, shape);
}

constexpr DataType kI32 = DataType::kInt32;
constexpr TypeRow ScatterRow(DataType updates) { return {{kI32, updates, kI32}, updates}; }
constexpr TypeRow kScatterTypes[] = {
    ScatterRow(DataType::kFloat32), ScatterRow(kI32),
    ScatterRow(DataType::kInt64),   ScatterRow(DataType::kInt8),
    ScatterRow(DataType::kUInt8),   ScatterRow(DataType::kBool),
};

// Rows that may give floats.
bool IsNarrow(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt4 ||
         type == DataType::kInt2;
}

Status InferEmbeddingLookup(OpDescription& op) {
  const TensorInfo& ids = op.inputs[0];
  const TensorInfo& rows = op.inputs[1];
  if (ids.type != kI32 || ids.shape.rank() != 1 || rows.shape.rank() < 2) {
    return Unsupported("takes a vector of int32 and rows of rank 2 or more");
  }
  Shape shape = rows.shape;
  shape.set(0, ids.shape[0]);
  const int64_t width = rows.shape.elements(1, rows.shape.rank());
  if (width * BitWidth(rows.type) % 8 != 0) return Unsupported("rows that share a byte");
  const DataType to = op.outputs[0].type;
  if (!IsNarrow(rows.type) || (to != DataType::kFloat32 && to != DataType::kFloat16)) {
    if (rows.quantization.per_channel())
      return Unsupported("does not take scales per row without floats");
    FUSELITE_RETURN_IF_ERROR(RequireSized(rows.type));
    return SetOutput(op, 0, rows.type, shape);
  }
  const Quantization& q = rows.quantization;
  if (q.empty() || q.zero_point() != 0) {
    return InvalidArgument("rows for floats need a scale and the zero point 0");
  }
  if (q.per_channel() && (q.axis != 0 || q.scales.size() != static_cast<size_t>(rows.shape[0]))) {
    return InvalidArgument("scales must be one or one for each row");
  }
  return SetOutput(op, 0, to, shape);
}

constexpr Candidate kGatherCandidates[] = {{"reference", BuildGather}};
constexpr Candidate kGatherNdCandidates[] = {{"known places", PlanGatherNdKnownPlaces},
                                             {"reference", BuildGatherNd}};
constexpr Candidate kScatterNdCandidates[] = {{"reference", BuildScatterNd}};
constexpr Candidate kEmbeddingCandidates[] = {{"reference", BuildEmbeddingLookup}};

}  // namespace

const OperatorDef& GatherOperator() {
  static constexpr OperatorDef kDef = {
      .name = "GATHER",
      .builtin_code = tflite::kTfLiteBuiltinGather,
      .options_type = 23,
      .max_version = 8,
      .fields = kGatherFields,
      .params_bytes = sizeof(GatherParams),
      .struct_bytes = sizeof(tflite::TfLiteGatherParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kGatherTypes,
      .limits = "rank 1 or more; int16, int32 and int64 indices",
      .infer = InferGather,
      .candidates = kGatherCandidates,
      .cost = MovementCost,
      .selects = true,
      .checks_indices = true,
  };
  return kDef;
}

const OperatorDef& GatherNdOperator() {
  static constexpr OperatorDef kDef = {
      .name = "GATHER_ND",
      .builtin_code = tflite::kTfLiteBuiltinGatherNd,
      .options_type = 83,
      .max_version = 6,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kGatherNdTypes,
      .limits = "rank 1 or more; int16, int32 and int64 indices",
      .infer = InferGatherNd,
      .candidates = kGatherNdCandidates,
      .cost = MovementCost,
      .checks_indices = true,
  };
  return kDef;
}

const OperatorDef& ScatterNdOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SCATTER_ND",
      .builtin_code = tflite::kTfLiteBuiltinScatterNd,
      .options_type = 97,
      .max_version = 1,
      .min_inputs = 3,
      .max_inputs = 3,
      .types = kScatterTypes,
      .infer = InferScatterNd,
      .candidates = kScatterNdCandidates,
      .cost = MovementCost,
      .checks_indices = true,
  };
  return kDef;
}

const OperatorDef& EmbeddingLookupOperator() {
  static constexpr OperatorDef kDef = {
      .name = "EMBEDDING_LOOKUP",
      .builtin_code = tflite::kTfLiteBuiltinEmbeddingLookup,
      .max_version = 5,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits =
          "rank 1; any type but string; int8, uint8, int4 and int2 rows may give float32 or "
          "float16",
      .infer = InferEmbeddingLookup,
      .candidates = kEmbeddingCandidates,
      .cost = MovementCost,
      .checks_indices = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
