// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL: two inputs of one type that
// broadcast to bool.
//
// int8 and uint8, and int16 for equality, are compared as TFLite compares them: brought to real
// values of 8 fraction bits by each input's own scale in fixed point, so that neighbours of a fine
// scale can be equal. From a scale of 1 on LiteRT shifts by a negative number of bits, which has no
// defined result; here the same formula goes on.
#include "kernels/compare/compare.h"

#include <array>
#include <functional>
#include <limits>

#include "kernels/costs.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/elementwise/typed/typed_rows.h"
#include "kernels/numbers/quantization.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/numbers/truth.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow Same(DataType type) { return {{type, type}, DataType::kBool}; }
constexpr TypeRow kEqualTypes[] = {
    Same(DataType::kFloat32), Same(DataType::kInt32),   Same(DataType::kInt64),
    Same(DataType::kBool),    Same(DataType::kInt16),   Same(DataType::kInt8),
    Same(DataType::kUInt8),   Same(DataType::kFloat16), Same(DataType::kBFloat16)};
constexpr TypeRow kOrderTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                   Same(DataType::kInt64),   Same(DataType::kInt16),
                                   Same(DataType::kInt8),    Same(DataType::kUInt8),
                                   Same(DataType::kFloat16), Same(DataType::kBFloat16)};

bool IsQuantized(const OpDescription& op) {
  const TensorInfo& x = op.inputs[0];
  if (x.type == DataType::kInt16) {
    // NOT_EQUAL has no form without scales, and the orders none with them.
    return op.op->builtin_code == tflite::kTfLiteBuiltinNotEqual ||
           (op.op->builtin_code == tflite::kTfLiteBuiltinEqual && !x.quantization.empty());
  }
  return x.type == DataType::kInt8 || x.type == DataType::kUInt8;
}

Status InferCompare(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(InferTypedMap(op, DataType::kBool));
  if (!IsQuantized(op)) return Status();
  for (const TensorInfo* operand : {&op.inputs[0], &op.inputs[1]}) {
    const Quantization& q = operand->quantization;
    const float limit = BitWidth(operand->type) == 8 ? 0x1p14F : 0x1p6F;  // 32 bits hold the result
    if (q.per_channel() || !(q.scale() > 0 && q.scale() < limit)) {
      return Unsupported("does not take an input scale of ", q.scale(), ", not between 0 and ",
                         limit);
    }
    int32_t min, max;
    QuantizedTypeRange(operand->type, &min, &max);
    if (q.zero_point() < min || q.zero_point() > max) {
      return Unsupported("does not take zero point ", q.zero_point(), " of ",
                         DataTypeName(operand->type));
    }
  }
  return Status();
}

// RealOfQuantized for every value of a byte type, computed once.
template <class T>
struct RealTable {
  std::array<int32_t, 256> values;
  explicit RealTable(const Quantization& q) {
    const RealOfQuantized real(q);
    for (int x = std::numeric_limits<T>::min(); x <= std::numeric_limits<T>::max(); ++x) {
      values[static_cast<uint8_t>(x)] = real(x);
    }
  }
  int32_t operator()(T x) const { return values[static_cast<uint8_t>(x)]; }
};

template <class T, class Compare>
std::unique_ptr<Kernel> BuildBytes(const OpDescription& op, Compare compare) {
  return MakeTypedMap<T, bool>(
      op, [compare, a = RealTable<T>(op.inputs[0].quantization),
           b = RealTable<T>(op.inputs[1].quantization)](T x, T y) { return compare(a(x), b(y)); });
}

template <class T, class Compare>
std::unique_ptr<Kernel> BuildQuantized(const OpDescription& op, Compare compare) {
  return MakeTypedMap<T, bool>(op, [compare, a = RealOfQuantized(op.inputs[0].quantization),
                                    b = RealOfQuantized(op.inputs[1].quantization)](T x, T y) {
    return compare(a(x), b(y));
  });
}

template <class Compare>
Result<std::unique_ptr<Kernel>> BuildOf(const OpDescription& op) {
  constexpr Compare kCompare{};
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return MakeTypedMap<float, bool>(op, kCompare);
    case DataType::kInt32: return MakeTypedMap<int32_t, bool>(op, kCompare);
    case DataType::kInt64: return MakeTypedMap<int64_t, bool>(op, kCompare);
    case DataType::kInt16:
      if (IsQuantized(op)) return BuildQuantized<int16_t>(op, kCompare);
      return MakeTypedMap<int16_t, bool>(op, kCompare);
    case DataType::kBool: return MakeTypedMap<Truth, Truth>(op, kCompare);
    case DataType::kFloat16: return MakeTypedMap<Half, bool>(op, kCompare);
    case DataType::kBFloat16: return MakeTypedMap<BFloat16, bool>(op, kCompare);
    case DataType::kInt8: return BuildBytes<int8_t>(op, kCompare);
    case DataType::kUInt8: return BuildBytes<uint8_t>(op, kCompare);
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

Result<std::unique_ptr<Kernel>> BuildCompare(const OpDescription& op, const BuildContext&) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinEqual: return BuildOf<std::equal_to<>>(op);
    case tflite::kTfLiteBuiltinNotEqual: return BuildOf<std::not_equal_to<>>(op);
    case tflite::kTfLiteBuiltinLess: return BuildOf<std::less<>>(op);
    case tflite::kTfLiteBuiltinLessEqual: return BuildOf<std::less_equal<>>(op);
    case tflite::kTfLiteBuiltinGreater: return BuildOf<std::greater<>>(op);
    default: return BuildOf<std::greater_equal<>>(op);
  }
}

TypedFunction FunctionOf(const OperatorDef& op) {
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinEqual: return TypedFunction::kEqual;
    case tflite::kTfLiteBuiltinNotEqual: return TypedFunction::kNotEqual;
    case tflite::kTfLiteBuiltinLess: return TypedFunction::kLess;
    case tflite::kTfLiteBuiltinLessEqual: return TypedFunction::kLessEqual;
    case tflite::kTfLiteBuiltinGreater: return TypedFunction::kGreater;
    default: return TypedFunction::kGreaterEqual;
  }
}

Comparison ComparisonOf(const OperatorDef& op) {
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinEqual: return {.less = false, .equal = true, .greater = false};
    case tflite::kTfLiteBuiltinNotEqual: return {.less = true, .equal = false, .greater = true};
    case tflite::kTfLiteBuiltinLess: return {.less = true, .equal = false, .greater = false};
    case tflite::kTfLiteBuiltinLessEqual: return {.less = true, .equal = true, .greater = false};
    case tflite::kTfLiteBuiltinGreater: return {.less = false, .equal = false, .greater = true};
    default: return {.less = false, .equal = true, .greater = true};
  }
}

Result<std::unique_ptr<Kernel>> BuildCompareHighway(const OpDescription& op,
                                                    const BuildContext& context) {
  if (IsQuantized(op)) return BuildQuantizedCompareHighway(op, ComparisonOf(*op.op), context);
  return BuildTypedRows(FunctionOf(*op.op), op, context);
}

constexpr Candidate kCandidates[] = {{"highway", BuildCompareHighway}, {"reference", BuildCompare}};

constexpr OperatorDef MakeCompare(std::string_view name, int code, int options_type,
                                  int max_version, std::span<const TypeRow> types) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.max_version = max_version;
  def.min_inputs = def.max_inputs = 2;
  def.types = types;
  def.infer = InferCompare;
  def.candidates = kCandidates;
  def.cost = OutputElements;
  def.pointwise = true;
  return def;
}

}  // namespace

#define FUSELITE_COMPARE(Name, NAME, options_type, max_version, types)                     \
  const OperatorDef& Name##Operator() {                                                    \
    static constexpr OperatorDef kDef =                                                    \
        MakeCompare(NAME, tflite::kTfLiteBuiltin##Name, options_type, max_version, types); \
    return kDef;                                                                           \
  }

FUSELITE_COMPARE(Equal, "EQUAL", 53, 5, kEqualTypes)
FUSELITE_COMPARE(Greater, "GREATER", 44, 2, kOrderTypes)
FUSELITE_COMPARE(GreaterEqual, "GREATER_EQUAL", 45, 3, kOrderTypes)
FUSELITE_COMPARE(Less, "LESS", 41, 3, kOrderTypes)
FUSELITE_COMPARE(LessEqual, "LESS_EQUAL", 46, 2, kOrderTypes)
FUSELITE_COMPARE(NotEqual, "NOT_EQUAL", 54, 4, kEqualTypes)

#undef FUSELITE_COMPARE

}  // namespace fuselite::kernels
