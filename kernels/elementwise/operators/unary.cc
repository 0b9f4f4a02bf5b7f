// The operators of one input.
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/bytes/byte_map.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/short_floats/short_float_rows.h"
#include "kernels/elementwise/short_floats/short_floats.h"
#include "kernels/elementwise/tables/lookup_table.h"
#include "kernels/elementwise/typed/integer_unary.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kLeakyReluFields[] = {
    {"alpha", FieldKind::kFloat, 0, offsetof(LeakyReluParams, alpha),
     offsetof(tflite::TfLiteLeakyReluParams, alpha)},
};
constexpr Field kGeluFields[] = {
    {"approximate", FieldKind::kBool, 0, offsetof(GeluParams, approximate),
     offsetof(tflite::TfLiteGeluParams, approximate)},
};

constexpr TypeRow Same(DataType type) { return {{type}, type}; }
constexpr TypeRow kFloat[] = {Same(DataType::kFloat32)};
constexpr TypeRow kFloat16[] = {Same(DataType::kFloat32), Same(DataType::kFloat16)};
constexpr TypeRow kAnyFloat[] = {Same(DataType::kFloat32), Same(DataType::kFloat16),
                                 Same(DataType::kBFloat16)};
constexpr TypeRow kNegTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt64),   Same(DataType::kInt8),
                                 Same(DataType::kInt16),   Same(DataType::kFloat16),
                                 Same(DataType::kBFloat16)};
constexpr TypeRow kAbsTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt8), Same(DataType::kInt16)};
constexpr TypeRow kSignTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                  Same(DataType::kFloat64)};

constexpr TypeRow kFloat8Bit[] = {Same(DataType::kFloat32), Same(DataType::kInt8),
                                  Same(DataType::kUInt8)};
constexpr TypeRow kFloat8And16Bit[] = {Same(DataType::kFloat32), Same(DataType::kInt8),
                                       Same(DataType::kUInt8), Same(DataType::kInt16)};
constexpr TypeRow kGeluTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt8),
                                  Same(DataType::kUInt8), Same(DataType::kInt16),
                                  Same(DataType::kFloat16)};
constexpr TypeRow kSigmoidTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt8),
                                     Same(DataType::kUInt8),   Same(DataType::kInt16),
                                     Same(DataType::kFloat16), Same(DataType::kBFloat16)};
constexpr TypeRow kFloatInt8[] = {Same(DataType::kFloat32), Same(DataType::kInt8)};
constexpr TypeRow kFloatInt8Int16[] = {Same(DataType::kFloat32), Same(DataType::kInt8),
                                       Same(DataType::kInt16)};

// NEG of int16 has no scales, and ABS has a form without them.
bool IsQuantized(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.type == DataType::kInt16) {
    return op.op->builtin_code != tflite::kTfLiteBuiltinNeg &&
           (op.op->builtin_code != tflite::kTfLiteBuiltinAbs || !in.quantization.empty());
  }
  return in.type == DataType::kInt8 || in.type == DataType::kUInt8;
}

Status InferUnary(OpDescription& op) {
  if (IsQuantized(op)) {
    if (!op.tail.empty()) return Unsupported("does not take a tail behind a quantized operator");
    FUSELITE_RETURN_IF_ERROR(MakeQuantizedFunction(op).status());
  }
  return SetElementwiseOutput(op, op.inputs[0].type, op.inputs[0].shape);
}

template <TailCandidate kCandidate>
Result<KernelPlan> PlanUnary(const OpDescription& op, const PlanContext& context) {
  const DataType type = op.inputs[0].type;
  if (IsQuantized(op) && (type == DataType::kInt16 || FailsOnNegatives(op))) {
    if (kCandidate == TailCandidate::kReference) return PlanReferenceLookup(op);
    if (type == DataType::kInt16) return OwnPlan(BuildInterpolated(op, context.isa));
    return Unsupported("goes through the reference's table");
  }
  if (IsQuantized(op)) {
    if (kCandidate == TailCandidate::kHighway && op.tail.empty()) {
      return PlanByteMap(op, "lookup " + std::string(DataTypeName(type)),
                         op.inputs[0].quantization.zero_point(), context.isa, MakeLookupTable);
    }
    TailStage lookup;
    lookup.kind = TailStage::Kind::kLookup;
    FUSELITE_ASSIGN_OR_RETURN(lookup.table, MakeLookupTable(op));
    return OwnPlan(BuildTailKernel("lookup", op, context, Tail{{lookup}}, 0, kCandidate));
  }
  const std::optional<TailStage> stage = UnaryStage(op);
  if (!stage) {
    const bool short_floats = BitWidth(type) == 16 && type != DataType::kInt16;
    if (kCandidate == TailCandidate::kReference) {
      return OwnPlan(short_floats ? BuildShortFloatUnary(op) : BuildIntegerUnary(op));
    }
    return short_floats ? PlanShortFloatUnaryRows(op, context)
                        : OwnPlan(BuildIntegerUnaryHighway(op, context));
  }
  return OwnPlan(
      BuildTailKernel(UnaryName(stage->unary), op, context, Tail{{*stage}}, 0, kCandidate));
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanUnary<TailCandidate::kHighway>},
    {"reference", PlanUnary<TailCandidate::kReference>},
};

// What an operator has beside its name. Costs count an element of an exponential as eight.
struct UnaryTraits {
  int options_type = 0;
  int max_version = 1;
  std::span<const TypeRow> types = kFloat;
  std::span<const Field> fields{};
  size_t params_bytes = 0, struct_bytes = 0;
  std::string_view limits{};
};

constexpr OperatorDef MakeUnary(std::string_view name, int code, const UnaryTraits& traits) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = traits.options_type;
  def.max_version = traits.max_version;
  def.types = traits.types;
  def.fields = traits.fields;
  def.params_bytes = traits.params_bytes;
  def.struct_bytes = traits.struct_bytes;
  def.infer = InferUnary;
  def.elementwise = def.pointwise = def.bfloat16_values = true;
  def.candidates = kCandidates;
  def.cost = [](const OpDescription& op) { return static_cast<double>(op.inputs[0].elements()); };
  def.limits = traits.limits;
  return def;
}

// TensorFlow's, which converters leave in a model where TFLite has none.
constexpr OperatorDef MakeFlexUnary(std::string_view name) {
  OperatorDef def = MakeUnary(name, -1, {});
  def.read_custom = IgnoreOptions;
  return def;
}

}  // namespace

const OperatorDef& FlexErfOperator() {
  static constexpr OperatorDef kDef = MakeFlexUnary("FlexErf");
  return kDef;
}
const OperatorDef& FlexSoftsignOperator() {
  static constexpr OperatorDef kDef = MakeFlexUnary("FlexSoftsign");
  return kDef;
}

#define FUSELITE_UNARY(Name, NAME, ...)                                          \
  const OperatorDef& Name##Operator() {                                          \
    static constexpr OperatorDef kDef =                                          \
        MakeUnary(NAME, tflite::kTfLiteBuiltin##Name, UnaryTraits{__VA_ARGS__}); \
    return kDef;                                                                 \
  }

FUSELITE_UNARY(Abs, "ABS", .options_type = 78, .max_version = 5, .types = kAbsTypes)
FUSELITE_UNARY(Ceil, "CEIL", )
FUSELITE_UNARY(Cos, "COS", .options_type = 85, .max_version = 2, .types = kFloat16)
FUSELITE_UNARY(Elu, "ELU", .types = kFloatInt8)
FUSELITE_UNARY(Exp, "EXP", .options_type = 33, .max_version = 2, .types = kFloatInt8Int16)
FUSELITE_UNARY(Floor, "FLOOR", .types = kAnyFloat)
FUSELITE_UNARY(Gelu, "GELU", .options_type = 116, .max_version = 3, .types = kGeluTypes,
               .fields = kGeluFields, .params_bytes = sizeof(GeluParams),
               .struct_bytes = sizeof(tflite::TfLiteGeluParams))
FUSELITE_UNARY(HardSwish, "HARD_SWISH", .options_type = 91, .types = kFloat8Bit)
FUSELITE_UNARY(LeakyRelu, "LEAKY_RELU", .options_type = 75, .max_version = 2,
               .types = kFloat8And16Bit, .fields = kLeakyReluFields,
               .params_bytes = sizeof(LeakyReluParams),
               .struct_bytes = sizeof(tflite::TfLiteLeakyReluParams))
FUSELITE_UNARY(Log, "LOG", .max_version = 2, .types = kFloatInt8Int16)
FUSELITE_UNARY(Logistic, "LOGISTIC", .max_version = 3, .types = kSigmoidTypes)
FUSELITE_UNARY(Neg, "NEG", .options_type = 42, .types = kNegTypes)
FUSELITE_UNARY(Relu, "RELU", .max_version = 3, .types = kFloat8And16Bit)
FUSELITE_UNARY(Relu0To1, "RELU_0_TO_1", .types = kFloat8Bit)
FUSELITE_UNARY(Relu6, "RELU6", .max_version = 3, .types = kFloat8And16Bit)
FUSELITE_UNARY(ReluN1To1, "RELU_N1_TO_1", .types = kFloat8Bit)
FUSELITE_UNARY(Round, "ROUND", .types = kAnyFloat)
FUSELITE_UNARY(
    Rsqrt, "RSQRT", .max_version = 3, .types = kFloatInt8Int16,
    .limits = "int8 where 1/(sqrt(input scale) * output scale) is from 2^-12 to below 2^20")
FUSELITE_UNARY(Sign, "SIGN", .options_type = 123, .max_version = 2, .types = kSignTypes)
FUSELITE_UNARY(Sin, "SIN", .max_version = 2, .types = kFloat16)
FUSELITE_UNARY(Sqrt, "SQRT", .max_version = 2, .types = kFloatInt8Int16)
FUSELITE_UNARY(Square, "SQUARE", .options_type = 66)
FUSELITE_UNARY(Tanh, "TANH", .max_version = 3, .types = kSigmoidTypes)

#undef FUSELITE_UNARY

}  // namespace fuselite::kernels
