#include "kernels/split/split.h"

#include "kernels/shape_rules.h"
#include "kernels/tensorflow/node_def.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kSplitFields[] = {
    {"num_splits", FieldKind::kInt32, 0, offsetof(SplitParams, num_splits),
     offsetof(tflite::TfLiteSplitParams, num_splits)},
};

constexpr Field kUnpackFields[] = {
    {"num", FieldKind::kInt32, 0, offsetof(UnpackParams, num),
     offsetof(tflite::TfLiteUnpackParams, num)},
    {"axis", FieldKind::kInt32, 1, offsetof(UnpackParams, axis),
     offsetof(tflite::TfLiteUnpackParams, axis)},
};

// The host has kernels for these only.
constexpr TypeRow SplitRow(DataType type) { return {{DataType::kInt32, type}, type}; }
constexpr TypeRow kSplitTypes[] = {SplitRow(DataType::kFloat32), SplitRow(DataType::kUInt8),
                                   SplitRow(DataType::kInt8),    SplitRow(DataType::kInt16),
                                   SplitRow(DataType::kInt32),   SplitRow(DataType::kInt64)};
constexpr std::span<const TypeRow> kSplitVTypes =
    kAlikeRows<DataType::kFloat32, DataType::kUInt8, DataType::kInt8, DataType::kInt16,
               DataType::kInt32, DataType::kInt64>;
constexpr TypeRow kUnpackTypes[] = {
    kAlike<DataType::kFloat32>, kAlike<DataType::kFloat16>, kAlike<DataType::kBFloat16>,
    kAlike<DataType::kInt32>,   kAlike<DataType::kInt16>,   kAlike<DataType::kInt8>,
    kAlike<DataType::kUInt8>,   kAlike<DataType::kBool>,
};

Result<int> SplitAxis(const OpDescription& op, int axis_input, int input) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t axis,
                            ReadInteger(op.inputs[axis_input], "the axis", IntegerTypes::kInt32));
  return ResolveAxis(axis, op.inputs[input].shape.rank());
}

// `input` is what is split.
Status CheckOutputs(const OpDescription& op, int32_t count, int input) {
  if (count != static_cast<int>(op.outputs.size())) {
    return InvalidArgument("splits into ", count, " parts with ", op.outputs.size(), " outputs");
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, i, op.inputs[input].type));
  }
  return Status();
}

Status SetParts(OpDescription& op, int input, int axis, const std::vector<int64_t>& sizes) {
  const TensorInfo& in = op.inputs[input];
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = in.shape;
    shape.set(axis, static_cast<int32_t>(sizes[i]));
    FUSELITE_RETURN_IF_ERROR(SetOutput(op, i, in.type, shape));
  }
  return Status();
}

Status InferSplit(OpDescription& op) {
  const int32_t parts = op.params.as<SplitParams>().num_splits;
  FUSELITE_RETURN_IF_ERROR(CheckOutputs(op, parts, 1));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, SplitAxis(op, 0, 1));
  const int32_t size = op.inputs[1].shape[axis];
  if (size % parts != 0) {
    return InvalidArgument("dimension ", axis, " of ", op.inputs[1].shape, " is no multiple of ",
                           parts);
  }
  return SetParts(op, 1, axis, std::vector<int64_t>(parts, size / parts));
}

Status InferSplitV(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckOutputs(op, op.params.as<SplitParams>().num_splits, 0));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, SplitAxis(op, 2, 0));
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                            ReadIntegers(op.inputs[1], "the sizes", IntegerTypes::kInt32Or64));
  if (sizes.size() != op.outputs.size()) {
    return InvalidArgument(sizes.size(), " sizes for ", op.outputs.size(), " outputs");
  }
  const int64_t total = op.inputs[0].shape[axis];
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1 && rest == nullptr) {
      rest = &size;
    } else if (size < 0 || size > total) {
      return InvalidArgument("a part of size ", size, " is not possible");
    } else {
      sum += size;
    }
  }
  if (rest) *rest = total - sum;
  if (sum > total || (!rest && sum != total)) {
    return InvalidArgument("the sizes add up to ", sum, ", dimension ", axis, " is ", total);
  }
  return SetParts(op, 0, axis, sizes);
}

Status InferUnpack(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const auto& params = op.params.as<UnpackParams>();
  FUSELITE_RETURN_IF_ERROR(CheckOutputs(op, params.num, 0));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(params.axis, in.shape.rank()));
  if (in.shape[axis] != params.num) {
    return InvalidArgument("unpacks ", params.num, " of the ", in.shape[axis], " in dimension ",
                           axis);
  }
  Shape shape;
  for (int d = 0; d < in.shape.rank(); ++d) {
    if (d != axis) shape.push_back(in.shape[d]);
  }
  for (const TensorInfo& out : op.outputs) {
    FUSELITE_RETURN_IF_ERROR(RequireSameQuantization(in, out));
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(SetOutput(op, i, in.type, shape));
  }
  return Status();
}

// Each output as a box of the input, one after the other along `axis`; `dropped` where the outputs
// lack that dimension.
Movement CutAlong(const OpDescription& op, int input, int axis, bool dropped) {
  Movement movement;
  const auto from = ByteStrides(op.inputs[input]);
  int64_t position = 0;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const TensorInfo& out = op.outputs[i];
    const auto to = ByteStrides(out);
    CopyPart part = MakePart(op, input, static_cast<int>(i));
    part.copy.in_offset = position * from[axis];
    for (int d = 0; d < out.shape.rank(); ++d) {
      part.copy.Add(out.shape[d], from[d + (dropped && d >= axis ? 1 : 0)], to[d]);
    }
    position += dropped ? 1 : out.shape[axis];
    movement.parts.push_back(part);
  }
  return movement;
}

// Reads the attribute `num_split` of FlexSplitV, which is SPLIT_V in TensorFlow: converters leave
// it where the sizes are int64.
Status ReadSplitVOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const NodeDef node, NodeDef::Read(options));
  const int64_t parts = node.Integer("num_split").value_or(0);
  if (parts < 1 || parts > INT32_MAX) return InvalidArgument("splits into ", parts, " parts");
  static_cast<SplitParams*>(params)->num_splits = static_cast<int32_t>(parts);
  return Status();
}

}  // namespace

Result<Movement> PlanSplit(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int axis, SplitAxis(op, 0, 1));
  return CutAlong(op, 1, axis, false);
}

Result<Movement> PlanSplitV(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int axis, SplitAxis(op, 2, 0));
  return CutAlong(op, 0, axis, false);
}

Result<Movement> PlanUnpack(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(
      const int axis, ResolveAxis(op.params.as<UnpackParams>().axis, op.inputs[0].shape.rank()));
  return CutAlong(op, 0, axis, true);
}

const OperatorDef& SplitOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SPLIT",
      .builtin_code = tflite::kTfLiteBuiltinSplit,
      .options_type = 35,
      .max_version = 5,
      .fields = kSplitFields,
      .params_bytes = sizeof(SplitParams),
      .struct_bytes = sizeof(tflite::TfLiteSplitParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .min_outputs = 1,
      .max_outputs = -1,
      .types = kSplitTypes,
      .infer = InferSplit,
      .candidates = kMovementCandidates<PlanSplit>,
      .cost = MovementCost,
      .selects = true,
      .places = PlanSplit,
  };
  return kDef;
}

constexpr OperatorDef kSplitV = {
    .name = "SPLIT_V",
    .builtin_code = tflite::kTfLiteBuiltinSplitV,
    .options_type = 79,
    .max_version = 3,
    .fields = kSplitFields,
    .params_bytes = sizeof(SplitParams),
    .struct_bytes = sizeof(tflite::TfLiteSplitVParams),
    .min_inputs = 3,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = -1,
    .types = kSplitVTypes,
    .infer = InferSplitV,
    .candidates = kMovementCandidates<PlanSplitV>,
    .cost = MovementCost,
    .selects = true,
    .places = PlanSplitV,
};

const OperatorDef& SplitVOperator() { return kSplitV; }

const OperatorDef& FlexSplitVOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = kSplitV;
    def.name = "FlexSplitV";
    def.read_custom = ReadSplitVOptions;
    def.builtin_code = -1;
    def.options_type = 0;
    def.max_version = 1;
    def.fields = {};
    def.struct_bytes = 0;
    // Those who ask know it by the name that a rewrite gives it.
    def.places = nullptr;
    return def;
  }();
  return kDef;
}

const OperatorDef& UnpackOperator() {
  static constexpr OperatorDef kDef = {
      .name = "UNPACK",
      .builtin_code = tflite::kTfLiteBuiltinUnpack,
      .options_type = 64,
      .max_version = 6,
      .fields = kUnpackFields,
      .params_bytes = sizeof(UnpackParams),
      .struct_bytes = sizeof(tflite::TfLiteUnpackParams),
      .min_outputs = 1,
      .max_outputs = -1,
      .types = kUnpackTypes,
      .limits = "rank 1 or more",
      .infer = InferUnpack,
      .candidates = kMovementCandidates<PlanUnpack>,
      .cost = MovementCost,
      .selects = true,
      .places = PlanUnpack,
  };
  return kDef;
}

}  // namespace fuselite::kernels
