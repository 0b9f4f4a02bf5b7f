// The operators of two inputs that broadcast.
#include "kernels/costs.h"
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/quantized/quantized_binary.h"
#include "kernels/elementwise/short_floats/short_float_rows.h"
#include "kernels/elementwise/short_floats/short_floats.h"
#include "kernels/elementwise/typed/binary_rows.h"
#include "kernels/elementwise/typed/typed_rows.h"
#include "kernels/make_kernel.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kAddFields[] = {
    {"fused_activation_function", FieldKind::kActivation, 0, offsetof(ArithmeticParams, activation),
     offsetof(tflite::TfLiteAddParams, activation)},
    {.name = "pot_scale_int16",
     .kind = FieldKind::kBool,
     .id = 1,
     .offset = offsetof(ArithmeticParams, pot_scale_int16),
     .struct_offset = offsetof(tflite::TfLiteAddParams, pot_scale_int16),
     .since_version = 3,
     .default_value = 1},
};
constexpr Field kSubFields[] = {
    kAddFields[0],
    {.name = "pot_scale_int16",
     .kind = FieldKind::kBool,
     .id = 1,
     .offset = offsetof(ArithmeticParams, pot_scale_int16),
     .struct_offset = offsetof(tflite::TfLiteSubParams, pot_scale_int16),
     .since_version = 5,
     .default_value = 1},
};
constexpr Field kMulFields[] = {kAddFields[0]};

constexpr TypeRow Same(DataType type) { return {{type, type}, type}; }
constexpr TypeRow kFloat[] = {Same(DataType::kFloat32)};
constexpr TypeRow kAddTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt64),   Same(DataType::kInt8),
                                 Same(DataType::kUInt8),   Same(DataType::kInt16),
                                 Same(DataType::kFloat16), Same(DataType::kBFloat16)};
constexpr TypeRow kSubTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt64),   Same(DataType::kInt8),
                                 Same(DataType::kUInt8),   Same(DataType::kInt16),
                                 Same(DataType::kFloat16), Same(DataType::kBFloat16)};
constexpr TypeRow kMulTypes[] = {Same(DataType::kFloat32),
                                 Same(DataType::kInt32),
                                 Same(DataType::kInt64),
                                 Same(DataType::kInt8),
                                 Same(DataType::kUInt8),
                                 Same(DataType::kInt16),
                                 {{DataType::kInt16, DataType::kInt16}, DataType::kInt8},
                                 {{DataType::kInt16, DataType::kInt16}, DataType::kUInt8},
                                 Same(DataType::kUInt32),
                                 Same(DataType::kFloat16),
                                 Same(DataType::kBFloat16),
                                 Same(DataType::kComplex64)};
constexpr TypeRow kDivTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt8),    Same(DataType::kUInt8),
                                 Same(DataType::kInt16),   Same(DataType::kFloat16),
                                 Same(DataType::kBFloat16)};
constexpr TypeRow kPreluTypes[] = {Same(DataType::kFloat32),
                                   Same(DataType::kInt8),
                                   Same(DataType::kUInt8),
                                   {{DataType::kInt16, DataType::kInt8}, DataType::kInt16}};
constexpr TypeRow kSquaredDifferenceTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                               Same(DataType::kInt8), Same(DataType::kFloat16),
                                               Same(DataType::kBFloat16)};
constexpr TypeRow kExtremaTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                     Same(DataType::kInt64),   Same(DataType::kInt8),
                                     Same(DataType::kUInt8),   Same(DataType::kInt16),
                                     Same(DataType::kFloat16), Same(DataType::kBFloat16)};

// Arithmetic of 8 and 16 bits; the values of MAXIMUM and MINIMUM are compared as they are, and ADD
// and MUL of int16 have a form without scales.
bool IsQuantized(BinaryKind kind, const OpDescription& op) {
  const DataType type = op.inputs[0].type;
  const auto plain = [](const TensorInfo& info) { return info.quantization.empty(); };
  if (type == DataType::kInt16 && (kind == BinaryKind::kAdd || kind == BinaryKind::kMul) &&
      plain(op.inputs[0]) && plain(op.inputs[1]) && plain(op.outputs[0])) {
    return false;
  }
  return kind != BinaryKind::kMaximum && kind != BinaryKind::kMinimum &&
         (type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt16);
}

Status InferBinary(OpDescription& op) {
  const TensorInfo& x = op.inputs[0];
  const TensorInfo& y = op.inputs[1];
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape, y.shape));
  const BinaryKind kind = *BinaryKindOf(*op.op);
  if (kind == BinaryKind::kPrelu && shape != x.shape) {
    return InvalidArgument("alpha ", y.shape, " does not broadcast to the input's ", x.shape);
  }
  float low, high;
  if (HasActivation(kind) &&
      !ActivationRange(op.params.as<ArithmeticParams>().activation, &low, &high)) {
    return Unsupported("does not take a fused activation other than a clamp");
  }
  if (x.type == DataType::kUInt32 && HasActivation(kind) && low < 0 && low >= -1) {
    return Unsupported("does not take a lower bound of ", low, " for unsigned integers");
  }
  if (x.type == DataType::kComplex64 &&
      op.params.as<ArithmeticParams>().activation != Activation::kNone) {
    return Unsupported("does not take a fused activation of complex numbers");
  }
  if (IsNarrowingMul(kind, op)) return InferNarrowingMul(op);
  if (IsQuantized(kind, op)) {
    op.outputs[0].type = x.type;
    FUSELITE_RETURN_IF_ERROR(CheckQuantizedBinary(kind, op));
  }
  return SetElementwiseOutput(op, x.type, shape);
}

// All but float32 and quantized values.
Result<std::unique_ptr<Kernel>> BuildOther(BinaryKind kind, const OpDescription& op) {
  switch (op.inputs[0].type) {
    case DataType::kFloat16:
    case DataType::kBFloat16: return BuildShortFloatBinary(kind, op);
    case DataType::kComplex64: return BuildComplexMul(op);
    default: return BuildIntegerBinary(kind, op);
  }
}

std::optional<TypedFunction> TypedFunctionOf(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kAdd: return TypedFunction::kAdd;
    case BinaryKind::kSub: return TypedFunction::kSub;
    case BinaryKind::kMul: return TypedFunction::kMul;
    case BinaryKind::kMaximum: return TypedFunction::kMaximum;
    case BinaryKind::kMinimum: return TypedFunction::kMinimum;
    case BinaryKind::kSquaredDifference: return TypedFunction::kSquaredDifference;
    default: return std::nullopt;
  }
}

// Integers that wrap around, and extremes of them.
Result<std::unique_ptr<Kernel>> BuildIntegerHighway(BinaryKind kind, const OpDescription& op,
                                                    const BuildContext& context) {
  const std::optional<TypedFunction> function = TypedFunctionOf(kind);
  if (!function) return Unsupported(op.op->name, " of integers has no vectors");
  if (HasActivation(kind) && op.params.as<ArithmeticParams>().activation != Activation::kNone) {
    return Unsupported("does not take a fused activation of integers");
  }
  return BuildTypedRows(*function, op, context);
}

template <TailCandidate kCandidate>
Result<KernelPlan> PlanBinary(const OpDescription& op, const PlanContext& context) {
  const BinaryKind kind = *BinaryKindOf(*op.op);
  if (IsNarrowingMul(kind, op)) {
    if (kCandidate == TailCandidate::kReference) return OwnPlan(BuildNarrowingMul(op));
    return Unsupported("int16 to 8 bits has no vector version");
  }
  if (IsQuantized(kind, op)) return PlanQuantizedBinary(kind, op, context, kCandidate);
  if (op.inputs[0].type != DataType::kFloat32) {
    if (kCandidate == TailCandidate::kReference) return OwnPlan(BuildOther(kind, op));
    const DataType type = op.inputs[0].type;
    const bool short_floats = type == DataType::kFloat16 || type == DataType::kBFloat16;
    return OwnPlan(short_floats
                       ? BuildShortFloatRows(kind, op, RangeOfShortFloats(kind, op), context)
                       : BuildIntegerHighway(kind, op, context));
  }
  if (std::optional<StagesOnInput> own = AsStagesOnInput(op)) {
    return OwnPlan(BuildTailKernel(BinaryName(kind), op, context, std::move(own->stages),
                                   own->flowing, kCandidate));
  }
  Tail clamp;
  AppendBinaryRange(op, &clamp);
  return OwnPlan(BuildBroadcastBinary(kind, op, context, std::move(clamp), kCandidate));
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanBinary<TailCandidate::kHighway>},
    {"reference", PlanBinary<TailCandidate::kReference>},
};

struct BinaryTraits {
  int options_type = 0;
  int max_version = 1;
  std::span<const TypeRow> types = kFloat;
  std::span<const Field> fields{};
  size_t struct_bytes = 0;
  bool commutes = false;
};

constexpr OperatorDef MakeBinary(std::string_view name, int code, const BinaryTraits& traits) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = traits.options_type;
  def.max_version = traits.max_version;
  def.types = traits.types;
  def.fields = traits.fields;
  def.params_bytes = traits.fields.empty() ? 0 : sizeof(ArithmeticParams);
  def.struct_bytes = traits.struct_bytes;
  def.min_inputs = def.max_inputs = 2;
  def.infer = InferBinary;
  def.elementwise = def.pointwise = def.bfloat16_values = true;
  def.commutes = traits.commutes;
  def.candidates = kCandidates;
  def.cost = OutputElements;
  return def;
}

}  // namespace

std::optional<BinaryKind> BinaryKindOf(const OperatorDef& op) {
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinAdd: return BinaryKind::kAdd;
    case tflite::kTfLiteBuiltinSub: return BinaryKind::kSub;
    case tflite::kTfLiteBuiltinMul: return BinaryKind::kMul;
    case tflite::kTfLiteBuiltinDiv: return BinaryKind::kDiv;
    case tflite::kTfLiteBuiltinMaximum: return BinaryKind::kMaximum;
    case tflite::kTfLiteBuiltinMinimum: return BinaryKind::kMinimum;
    case tflite::kTfLiteBuiltinSquaredDifference: return BinaryKind::kSquaredDifference;
    case tflite::kTfLiteBuiltinPrelu: return BinaryKind::kPrelu;
    default: return std::nullopt;
  }
}

bool HasActivation(BinaryKind kind) {
  return kind == BinaryKind::kAdd || kind == BinaryKind::kSub || kind == BinaryKind::kMul ||
         kind == BinaryKind::kDiv;
}

#define FUSELITE_BINARY(Name, NAME, ...)                                           \
  const OperatorDef& Name##Operator() {                                            \
    static constexpr OperatorDef kDef =                                            \
        MakeBinary(NAME, tflite::kTfLiteBuiltin##Name, BinaryTraits{__VA_ARGS__}); \
    return kDef;                                                                   \
  }

FUSELITE_BINARY(Add, "ADD", .options_type = 11, .max_version = 6, .types = kAddTypes,
                .fields = kAddFields, .struct_bytes = sizeof(tflite::TfLiteAddParams),
                .commutes = true)
FUSELITE_BINARY(Div, "DIV", .options_type = 29, .max_version = 2, .types = kDivTypes,
                .fields = kMulFields, .struct_bytes = sizeof(tflite::TfLiteDivParams))
FUSELITE_BINARY(Maximum, "MAXIMUM", .options_type = 39, .max_version = 4, .types = kExtremaTypes,
                .commutes = true)
FUSELITE_BINARY(Minimum, "MINIMUM", .options_type = 39, .max_version = 4, .types = kExtremaTypes,
                .commutes = true)
FUSELITE_BINARY(Mul, "MUL", .options_type = 21, .max_version = 8, .types = kMulTypes,
                .fields = kMulFields, .struct_bytes = sizeof(tflite::TfLiteMulParams),
                .commutes = true)
FUSELITE_BINARY(Prelu, "PRELU", .types = kPreluTypes)
FUSELITE_BINARY(SquaredDifference, "SQUARED_DIFFERENCE", .options_type = 76, .max_version = 2,
                .types = kSquaredDifferenceTypes, .commutes = true)
FUSELITE_BINARY(Sub, "SUB", .options_type = 28, .max_version = 5, .types = kSubTypes,
                .fields = kSubFields, .struct_bytes = sizeof(tflite::TfLiteSubParams))

#undef FUSELITE_BINARY

}  // namespace fuselite::kernels
