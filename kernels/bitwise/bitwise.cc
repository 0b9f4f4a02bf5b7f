// BITWISE_XOR, RIGHT_SHIFT and STABLEHLO_SHIFT_LEFT: two inputs of one integer type, which
// broadcast but for the last.
#include <algorithm>

#include "kernels/costs.h"
#include "kernels/elementwise/typed/shifts.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/elementwise/typed/typed_rows.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow Same(DataType type) { return {{type, type}, type}; }
constexpr TypeRow kTypes[] = {Same(DataType::kInt8),  Same(DataType::kUInt8),
                              Same(DataType::kInt16), Same(DataType::kUInt16),
                              Same(DataType::kInt32), Same(DataType::kUInt32)};
constexpr TypeRow kShiftLeftTypes[] = {Same(DataType::kInt8), Same(DataType::kInt16),
                                       Same(DataType::kInt32)};

struct Xor {
  template <class T>
  T operator()(T x, T y) const {
    return x ^ y;
  }
};

// Shifts by 0 to all bits but one; signed numbers keep their sign.
struct ShiftRight {
  template <class T>
  T operator()(T x, T y) const {
    constexpr int kMost = 8 * sizeof(T) - 1;
    const int by = y < T{0} ? 0 : static_cast<int>(std::min<T>(y, kMost));
    return static_cast<T>(x >> by);
  }
};

struct ShiftLeft {
  template <class T>
  T operator()(T x, T y) const {
    return ShiftedLeft(x, y);
  }
};

Status InferBitwise(OpDescription& op) { return InferTypedMap(op, op.inputs[0].type); }

Status InferShiftLeft(OpDescription& op) {
  if (op.inputs[0].shape != op.inputs[1].shape) {
    return InvalidArgument("operands of ", op.inputs[0].shape, " and ", op.inputs[1].shape);
  }
  return InferBitwise(op);
}

template <class F>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  constexpr F kFunction{};
  switch (op.inputs[0].type) {
    case DataType::kInt8: return MakeTypedMap<int8_t, int8_t>(op, kFunction);
    case DataType::kUInt8: return MakeTypedMap<uint8_t, uint8_t>(op, kFunction);
    case DataType::kInt16: return MakeTypedMap<int16_t, int16_t>(op, kFunction);
    case DataType::kUInt16: return MakeTypedMap<uint16_t, uint16_t>(op, kFunction);
    case DataType::kInt32: return MakeTypedMap<int32_t, int32_t>(op, kFunction);
    case DataType::kUInt32: return MakeTypedMap<uint32_t, uint32_t>(op, kFunction);
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

template <class F>
constexpr Candidate kCandidates[] = {{"reference", Build<F>}};

Result<std::unique_ptr<Kernel>> BuildShiftLeftRows(const OpDescription& op,
                                                   const BuildContext& context) {
  return BuildTypedRows(TypedFunction::kShiftLeft, op, context);
}
constexpr Candidate kShiftLeftCandidates[] = {{"highway", BuildShiftLeftRows},
                                              {"reference", Build<ShiftLeft>}};

template <class F>
constexpr OperatorDef Make(std::string_view name, int code, int options_type) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.min_inputs = def.max_inputs = 2;
  def.types = kTypes;
  def.infer = InferBitwise;
  def.candidates = kCandidates<F>;
  def.cost = OutputElements;
  return def;
}

}  // namespace

const OperatorDef& BitwiseXorOperator() {
  static constexpr OperatorDef kDef =
      Make<Xor>("BITWISE_XOR", tflite::kTfLiteBuiltinBitwiseXor, 125);
  return kDef;
}

const OperatorDef& RightShiftOperator() {
  static constexpr OperatorDef kDef =
      Make<ShiftRight>("RIGHT_SHIFT", tflite::kTfLiteBuiltinRightShift, 126);
  return kDef;
}

const OperatorDef& StablehloShiftLeftOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Make<ShiftLeft>("STABLEHLO_SHIFT_LEFT",
                                      tflite::kTfLiteBuiltinStablehloShiftLeft, kSecondUnion + 22);
    def.types = kShiftLeftTypes;
    def.candidates = kShiftLeftCandidates;
    def.infer = InferShiftLeft;
    return def;
  }();
  return kDef;
}

}  // namespace fuselite::kernels
