#include "kernels/reduce/reduce.h"

#include <array>
#include <cmath>

#include "kernels/numbers/quantization.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"keep_dims", FieldKind::kBool, 0, offsetof(ReduceParams, keep_dims),
     offsetof(tflite::TfLiteReducerParams, keep_dims)},
};

constexpr TypeRow Row(DataType type) { return {{type, DataType::kInt32}, type}; }
constexpr TypeRow kSumTypes[] = {
    Row(DataType::kFloat32), Row(DataType::kInt32), Row(DataType::kInt64), Row(DataType::kInt8),
    Row(DataType::kUInt8),   Row(DataType::kInt16), Row(DataType::kBool)};
constexpr TypeRow kAllNumbers[] = {Row(DataType::kFloat32), Row(DataType::kInt32),
                                   Row(DataType::kInt64),   Row(DataType::kInt8),
                                   Row(DataType::kUInt8),   Row(DataType::kInt16)};
constexpr TypeRow kNumbersAndBool[] = {
    Row(DataType::kFloat32), Row(DataType::kInt32), Row(DataType::kInt64), Row(DataType::kInt8),
    Row(DataType::kUInt8),   Row(DataType::kInt16), Row(DataType::kBool)};
constexpr TypeRow kBool[] = {Row(DataType::kBool)};

using Axes = std::array<bool, Shape::kMaxRank>;

Result<Axes> ReadAxes(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                            ReadIntegers(op.inputs[1], "the axes", IntegerTypes::kInt32));
  Axes reduced{};
  const int rank = op.inputs[0].shape.rank();
  if (rank == 0) return reduced;
  for (const int64_t value : values) {
    FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(value, rank));
    reduced[axis] = true;
  }
  return reduced;
}

Status CheckQuantization(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  const Quantization& from = in.quantization;
  const Quantization& to = out.quantization;
  const ReduceKind kind = ReduceKindOf(*op.op);
  const bool quantized = in.type == DataType::kInt8 || in.type == DataType::kInt16;
  if (kind == ReduceKind::kProd && !from.empty() && !quantized) {
    return Unsupported("does not take a product of quantized ", DataTypeName(in.type));
  }
  if (!quantized && in.type != DataType::kUInt8) return Status();
  if (in.type == DataType::kInt16 && (from.zero_point() != 0 || to.zero_point() != 0)) {
    return InvalidArgument("the zero points of int16 operands must be 0");
  }
  const bool moves = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  if (moves || (kind == ReduceKind::kProd && from.empty())) {
    return RequireSameQuantization(in, out);
  }
  const double ratio = static_cast<double>(from.scale()) / to.scale();
  if (std::isfinite(ratio) && ratio > 0) return Status();
  return Unsupported("scales ", from.scale(), " and ", to.scale(), " must be positive");
}

Status InferReduce(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  if (!op.tail.empty()) return Unsupported("does not take a tail behind a reduction");
  if (op.outputs[0].row_pitch != 0) return Unsupported("does not take pitched rows of the output");
  FUSELITE_RETURN_IF_ERROR(CheckQuantization(op));
  FUSELITE_ASSIGN_OR_RETURN(const Axes reduced, ReadAxes(op));
  Shape out;
  for (int d = 0; d < in.rank(); ++d) {
    if (!reduced[d]) out.push_back(in[d]);
    if (reduced[d] && op.params.as<ReduceParams>().keep_dims) out.push_back(1);
  }
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, op.inputs[0].type, out));
  if (ReduceKindOf(*op.op) != ReduceKind::kProd || op.inputs[0].quantization.empty()) {
    return Status();
  }
  return MakeScaledProduct(op).status();
}

constexpr Candidate kCandidates[] = {
    Candidate::OfBFloat16("highway", BuildReduceHighway),
    {"reference", BuildReduceReference},
};

constexpr OperatorDef MakeReduce(std::string_view name, int code, int max_version,
                                 std::span<const TypeRow> types) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = 27;
  def.max_version = max_version;
  def.fields = kFields;
  def.params_bytes = sizeof(ReduceParams);
  def.struct_bytes = sizeof(tflite::TfLiteReducerParams);
  def.min_inputs = def.max_inputs = 2;
  def.types = types;
  def.infer = InferReduce;
  def.candidates = kCandidates;
  def.cost = [](const OpDescription& op) { return static_cast<double>(op.inputs[0].elements()); };
  def.selects = code == tflite::kTfLiteBuiltinReduceMax || code == tflite::kTfLiteBuiltinReduceMin;
  def.bfloat16_values = code == tflite::kTfLiteBuiltinMean;
  def.samples = SampleRule::kApartByKept;
  return def;
}

// Longer groups fill vectors of their own.
constexpr int64_t kMostInGroup = 64;
// Fewer rows do not repay going over their columns twice.
constexpr int64_t kFewRows = 4;

}  // namespace

ReduceKind ReduceKindOf(const OperatorDef& op) {
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinSum: return ReduceKind::kSum;
    case tflite::kTfLiteBuiltinReduceProd: return ReduceKind::kProd;
    case tflite::kTfLiteBuiltinReduceMax: return ReduceKind::kMax;
    case tflite::kTfLiteBuiltinReduceMin: return ReduceKind::kMin;
    case tflite::kTfLiteBuiltinReduceAny: return ReduceKind::kAny;
    case tflite::kTfLiteBuiltinReduceAll: return ReduceKind::kAll;
    default: return ReduceKind::kMean;
  }
}

ReducePlan PlanReduce(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const Axes axes = ReadAxes(op).value();
  ReducePlan plan;
  // Outermost first; a dimension joins the one before it where that steps over exactly its extent.
  std::vector<ReducePlan::Dim> dims[2];
  int64_t strides[Shape::kMaxRank];
  int64_t stride = 1;
  for (int d = in.shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride = d == in.shape.rank() - 1 ? in.pitch() : stride * in.shape[d];
  }
  int last_kind = -1;
  for (int d = 0; d < in.shape.rank(); ++d) {
    const int kind = axes[d] ? 1 : 0;
    const ReducePlan::Dim dim{in.shape[d], strides[d]};
    if (dim.size == 1) continue;
    std::vector<ReducePlan::Dim>& list = dims[kind];
    if (kind == last_kind && list.back().stride == dim.stride * dim.size) {
      list.back() = {list.back().size * dim.size, dim.stride};
    } else {
      list.push_back(dim);
    }
    last_kind = kind;
  }
  plan.kept = std::move(dims[0]);
  plan.reduced = std::move(dims[1]);
  if (!plan.kept.empty() && plan.kept.back().stride == 1) {
    plan.lanes = plan.kept.back().size;
    plan.kept.pop_back();
  }
  if (!plan.reduced.empty()) {
    plan.run_count = plan.reduced.back().size;
    plan.run_stride = plan.reduced.back().stride;
    plan.reduced.pop_back();
  }
  for (const auto& dim : plan.kept) plan.outer *= dim.size;
  // Runs without an element may be any number; none is visited.
  if (plan.run_count == 0) plan.runs = 0;
  for (const auto& dim : plan.reduced) plan.runs *= dim.size;
  return plan;
}

std::optional<GroupedColumns> AsGroupedColumns(const ReducePlan& plan, int64_t most_columns) {
  if (!AlongRuns(plan) || plan.runs < kFewRows || plan.run_count > kMostInGroup) {
    return std::nullopt;
  }
  if (plan.kept.empty() || plan.kept.back().stride != plan.run_count) return std::nullopt;
  GroupedColumns grouped{plan, plan.run_count};
  ReducePlan& columns = grouped.columns;
  columns.lanes = columns.kept.back().size * plan.run_count;
  columns.outer /= columns.kept.back().size;
  columns.kept.pop_back();
  columns.run_count = columns.reduced.back().size;
  columns.run_stride = columns.reduced.back().stride;
  columns.runs /= columns.run_count;
  columns.reduced.pop_back();
  grouped.together = std::min(grouped.groups(), most_columns / grouped.group);
  return grouped;
}

Result<ScaledProduct> MakeScaledProduct(const OpDescription& op) {
  const Quantization& in = op.inputs[0].quantization;
  const Quantization& out = op.outputs[0].quantization;
  const int64_t terms = PlanReduce(op).terms();
  if (terms == 0) return Unsupported("does not take a product of no quantized values");
  const double root = std::pow(static_cast<double>(out.scale()), 1.0 / static_cast<double>(terms));
  ScaledProduct product{.scale = ToFixedPoint(in.scale() / root),
                        .in_zero_point = in.zero_point(),
                        .out_zero_point = out.zero_point(),
                        .min = 0,
                        .max = 0};
  // Beyond, TFLite's multiplication would shift by a negative amount.
  if (product.scale.shift > 14)
    return Unsupported("does not take scales ", in.scale(), " and ", out.scale());
  QuantizedTypeRange(op.outputs[0].type, &product.min, &product.max);
  return product;
}

#define FUSELITE_REDUCE(Name, NAME, max_version, types)                     \
  const OperatorDef& Name##Operator() {                                     \
    static constexpr OperatorDef kDef =                                     \
        MakeReduce(NAME, tflite::kTfLiteBuiltin##Name, max_version, types); \
    return kDef;                                                            \
  }

FUSELITE_REDUCE(Mean, "MEAN", 3, kAllNumbers)
FUSELITE_REDUCE(ReduceAll, "REDUCE_ALL", 1, kBool)
FUSELITE_REDUCE(ReduceAny, "REDUCE_ANY", 1, kBool)
FUSELITE_REDUCE(ReduceMax, "REDUCE_MAX", 3, kNumbersAndBool)
FUSELITE_REDUCE(ReduceMin, "REDUCE_MIN", 3, kNumbersAndBool)
FUSELITE_REDUCE(ReduceProd, "REDUCE_PROD", 2, kNumbersAndBool)
FUSELITE_REDUCE(Sum, "SUM", 2, kSumTypes)

#undef FUSELITE_REDUCE

}  // namespace fuselite::kernels
