#include "kernels/elementwise/integer_unary.h"

#include <cmath>
#include <type_traits>

#include "kernels/elementwise/typed_map.h"
#include "runtime/tflite_builtin_codes.h"

namespace fuselite::kernels {
namespace {

template <class T>
T Negate(T x) {
  return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
}
template <class T>
T Magnitude(T x) {
  return x < 0 ? Negate(x) : x;
}
template <class T>
T Signum(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return x;
  }
  return static_cast<T>((x > 0) - (x < 0));
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildOf(const OpDescription& op) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinNeg: return MakeTypedUnaryMap<T, T>(op, Negate<T>);
    case tflite::kTfLiteBuiltinAbs: return MakeTypedUnaryMap<T, T>(op, Magnitude<T>);
    case tflite::kTfLiteBuiltinSign: return MakeTypedUnaryMap<T, T>(op, Signum<T>);
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildIntegerUnary(const OpDescription& op) {
  switch (op.inputs[0].type) {
    case DataType::kInt64: return BuildOf<int64_t>(op);
    case DataType::kInt32: return BuildOf<int32_t>(op);
    case DataType::kInt16: return BuildOf<int16_t>(op);
    case DataType::kInt8: return BuildOf<int8_t>(op);
    case DataType::kFloat64:
      if (op.op->builtin_code == tflite::kTfLiteBuiltinSign) {
        return MakeTypedUnaryMap<double, double>(op, Signum<double>);
      }
      [[fallthrough]];
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

}  // namespace fuselite::kernels
