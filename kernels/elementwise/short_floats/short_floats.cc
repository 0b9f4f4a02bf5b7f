#include "kernels/elementwise/short_floats/short_floats.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/numbers/short_floats.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

// TFLite's, which leaves out the 1 where that is less than half a step of float, and from -9 down.
float Logistic(float x) {
  if (x > 16.619047164916992188F) return 1;
  return x < -9 ? std::exp(x) : 1 / (1 + std::exp(-x));
}

// Half to even, but zero comes out positive.
float Round(float x) {
  const float floor = std::floor(x);
  const float rest = x - floor;
  const bool down = rest < 0.5F || (rest == 0.5F && floor == 2 * std::trunc(floor / 2));
  return down ? floor : floor + 1;
}

Half GeluTanh(Half x) {
  const Half factor(static_cast<float>(M_2_SQRTPI * M_SQRT1_2));
  const Half cube(Half(x * x) * x);
  const Half inner(factor * Half(x + Half(Half(0.044715F) * cube)));
  return Half(Half(Half(0.5F) * x) * Half(1 + Half(std::tanh(inner))));
}

template <class T, float (*kFunction)(float)>
std::unique_ptr<Kernel> Rounded(const OpDescription& op) {
  return MakeTypedUnaryMap<T, T>(op, [](T x) { return T(kFunction(x)); });
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildUnaryOf(const OpDescription& op) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinCos: return Rounded<T, std::cos>(op);
    case tflite::kTfLiteBuiltinFloor: return Rounded<T, std::floor>(op);
    case tflite::kTfLiteBuiltinLogistic: return Rounded<T, Logistic>(op);
    case tflite::kTfLiteBuiltinRound: return Rounded<T, Round>(op);
    case tflite::kTfLiteBuiltinSin: return Rounded<T, std::sin>(op);
    case tflite::kTfLiteBuiltinTanh: return Rounded<T, std::tanh>(op);
    case tflite::kTfLiteBuiltinNeg:
      return MakeTypedUnaryMap<T, T>(op, [](T x) {
        x.bits ^= 0x8000;
        return x;
      });
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

// The range of a fused activation, and, as TFLite has it for float16, the finite numbers.
template <class T>
ShortFloatRange RangeOf(const OpDescription& op) {
  float min, max;
  ActivationRange(op.params.as<ArithmeticParams>().activation, &min, &max);
  return {std::max(-T::kMax, min), std::min(T::kMax, max)};
}

// function(x, y), rounded, then clamped.
template <class T, class F>
std::unique_ptr<Kernel> Clamped(const OpDescription& op, F function) {
  // A NaN stays one.
  return MakeTypedMap<T, T>(op, [range = RangeOf<T>(op), function](float x, float y) {
    const T result(function(x, y));
    if (result < range.low) return T(range.low);
    return result > range.high ? T(range.high) : result;
  });
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildBinaryOf(BinaryKind kind, const OpDescription& op) {
  switch (kind) {
    case BinaryKind::kAdd: return Clamped<T>(op, [](float x, float y) { return x + y; });
    case BinaryKind::kSub: return Clamped<T>(op, [](float x, float y) { return x - y; });
    case BinaryKind::kMul: return Clamped<T>(op, [](float x, float y) { return x * y; });
    case BinaryKind::kDiv: return Clamped<T>(op, [](float x, float y) { return x / y; });
    case BinaryKind::kSquaredDifference:
      return MakeTypedMap<T, T>(op, [](float x, float y) { return T((x - y) * (x - y)); });
    // Both zeros, or one a NaN, give the second.
    case BinaryKind::kMaximum:
      return MakeTypedMap<T, T>(op, [](T x, T y) { return x > y ? x : y; });
    case BinaryKind::kMinimum:
      return MakeTypedMap<T, T>(op, [](T x, T y) { return x < y ? x : y; });
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

}  // namespace

Half Gelu(Half x) {
  const Half half(Half(0.5F) * x);
  const Half scaled(x * Half(static_cast<float>(-M_SQRT1_2)));
  return Half(half * Half(std::erfc(scaled)));
}

Result<std::unique_ptr<Kernel>> BuildShortFloatUnary(const OpDescription& op) {
  if (op.op->builtin_code == tflite::kTfLiteBuiltinGelu) {
    return MakeTypedUnaryMap<Half, Half>(op,
                                         op.params.as<GeluParams>().approximate ? GeluTanh : Gelu);
  }
  return op.inputs[0].type == DataType::kFloat16 ? BuildUnaryOf<Half>(op)
                                                 : BuildUnaryOf<BFloat16>(op);
}

Result<std::unique_ptr<Kernel>> BuildShortFloatBinary(BinaryKind kind, const OpDescription& op) {
  return op.inputs[0].type == DataType::kFloat16 ? BuildBinaryOf<Half>(kind, op)
                                                 : BuildBinaryOf<BFloat16>(kind, op);
}

ShortFloatRange RangeOfShortFloats(BinaryKind kind, const OpDescription& op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (!HasActivation(kind)) return {-kInfinity, kInfinity};
  return op.inputs[0].type == DataType::kFloat16 ? RangeOf<Half>(op) : RangeOf<BFloat16>(op);
}

Result<std::unique_ptr<Kernel>> BuildComplexMul(const OpDescription& op) {
  using Complex = std::complex<float>;
  return MakeTypedMap<Complex, Complex>(op, [](Complex x, Complex y) { return x * y; });
}

}  // namespace fuselite::kernels
