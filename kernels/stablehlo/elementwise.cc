// STABLEHLO_ADD, MULTIPLY, MAXIMUM, MINIMUM and AND: two inputs of one type and one shape. Integers
// wrap around; there are neither scales nor activations.
#include <limits>

#include "kernels/costs.h"
#include "kernels/elementwise/short_floats/short_float_rows.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/elementwise/typed/typed_rows.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/numbers/truth.h"
#include "kernels/stablehlo/functions.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using stablehlo::Larger, stablehlo::Product, stablehlo::Smaller, stablehlo::Sum;

constexpr TypeRow Same(DataType type) { return {{type, type}, type}; }
// The floats come last: AND does not take them.
constexpr TypeRow kTypes[] = {
    Same(DataType::kInt8),    Same(DataType::kInt16),   Same(DataType::kInt32),
    Same(DataType::kInt64),   Same(DataType::kUInt8),   Same(DataType::kUInt16),
    Same(DataType::kUInt32),  Same(DataType::kUInt64),  Same(DataType::kBool),
    Same(DataType::kFloat16), Same(DataType::kFloat32), Same(DataType::kFloat64)};
constexpr std::span kAndTypes = std::span(kTypes).first(std::size(kTypes) - 3);

struct And {
  template <class T>
  T operator()(T x, T y) const {
    return stablehlo::Wrapped(
        x, y, [](auto a, auto b) { return static_cast<uint64_t>(a) & static_cast<uint64_t>(b); });
  }
};

Status InferSameShape(OpDescription& op) {
  if (op.inputs[0].shape != op.inputs[1].shape) {
    return InvalidArgument("operands of ", op.inputs[0].shape, " and ", op.inputs[1].shape);
  }
  return InferTypedMap(op, op.inputs[0].type);
}

template <class F>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  constexpr F kFunction{};
  switch (op.inputs[0].type) {
    case DataType::kInt8: return MakeTypedMap<int8_t, int8_t>(op, kFunction);
    case DataType::kInt16: return MakeTypedMap<int16_t, int16_t>(op, kFunction);
    case DataType::kInt32: return MakeTypedMap<int32_t, int32_t>(op, kFunction);
    case DataType::kInt64: return MakeTypedMap<int64_t, int64_t>(op, kFunction);
    case DataType::kUInt8: return MakeTypedMap<uint8_t, uint8_t>(op, kFunction);
    case DataType::kUInt16: return MakeTypedMap<uint16_t, uint16_t>(op, kFunction);
    case DataType::kUInt32: return MakeTypedMap<uint32_t, uint32_t>(op, kFunction);
    case DataType::kUInt64: return MakeTypedMap<uint64_t, uint64_t>(op, kFunction);
    case DataType::kBool: return MakeTypedMap<Truth, Truth>(op, kFunction);
    case DataType::kFloat16: return MakeTypedMap<Half, Half>(op, kFunction);
    case DataType::kFloat32: return MakeTypedMap<float, float>(op, kFunction);
    case DataType::kFloat64: return MakeTypedMap<double, double>(op, kFunction);
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

// A sum of truth values is true where one of them is, as their larger one is.
template <class F>
constexpr TypedFunction TypedFunctionOf(bool truth) {
  if (std::is_same_v<F, And>) return TypedFunction::kAnd;
  if (std::is_same_v<F, Sum>) return truth ? TypedFunction::kOr : TypedFunction::kAdd;
  if (std::is_same_v<F, Product>) return truth ? TypedFunction::kAnd : TypedFunction::kMul;
  if (std::is_same_v<F, Larger>) return truth ? TypedFunction::kOr : TypedFunction::kMaximum;
  return truth ? TypedFunction::kAnd : TypedFunction::kMinimum;
}

// The operators of floats; there is no AND among them.
template <class F>
constexpr BinaryKind KindOf() {
  if (std::is_same_v<F, Sum>) return BinaryKind::kAdd;
  if (std::is_same_v<F, Product>) return BinaryKind::kMul;
  return std::is_same_v<F, Larger> ? BinaryKind::kReverseMaximum : BinaryKind::kReverseMinimum;
}

template <class F>
Result<std::unique_ptr<Kernel>> BuildVectors(const OpDescription& op, const BuildContext& context) {
  if (op.inputs[0].type == DataType::kFloat16) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return BuildShortFloatRows(KindOf<F>(), op, {-kInfinity, kInfinity}, context);
  }
  return BuildTypedRows(TypedFunctionOf<F>(op.inputs[0].type == DataType::kBool), op, context);
}

template <class F>
constexpr Candidate kCandidates[] = {{"highway", BuildVectors<F>}, {"reference", Build<F>}};

template <class F>
constexpr OperatorDef Make(std::string_view name, int code,
                           std::span<const TypeRow> types = kTypes) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.min_inputs = def.max_inputs = 2;
  def.types = types;
  def.infer = InferSameShape;
  def.candidates = kCandidates<F>;
  def.cost = OutputElements;
  return def;
}

}  // namespace

const OperatorDef& StablehloAddOperator() {
  static constexpr OperatorDef kDef =
      Make<Sum>("STABLEHLO_ADD", tflite::kTfLiteBuiltinStablehloAdd);
  return kDef;
}

const OperatorDef& StablehloAndOperator() {
  static constexpr OperatorDef kDef =
      Make<And>("STABLEHLO_AND", tflite::kTfLiteBuiltinStablehloAnd, kAndTypes);
  return kDef;
}

const OperatorDef& StablehloMaximumOperator() {
  static constexpr OperatorDef kDef =
      Make<Larger>("STABLEHLO_MAXIMUM", tflite::kTfLiteBuiltinStablehloMaximum);
  return kDef;
}

const OperatorDef& StablehloMinimumOperator() {
  static constexpr OperatorDef kDef =
      Make<Smaller>("STABLEHLO_MINIMUM", tflite::kTfLiteBuiltinStablehloMinimum);
  return kDef;
}

const OperatorDef& StablehloMultiplyOperator() {
  static constexpr OperatorDef kDef =
      Make<Product>("STABLEHLO_MULTIPLY", tflite::kTfLiteBuiltinStablehloMultiply);
  return kDef;
}

}  // namespace fuselite::kernels
