#include "kernels/elementwise/short_floats.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/elementwise/typed_map.h"
#include "kernels/short_floats.h"
#include "runtime/tflite_builtin_codes.h"

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

template <class T>
T Gelu(T x) {
  const auto half = static_cast<T>(T(0.5F) * x);
  const auto scaled = static_cast<T>(x * T(static_cast<float>(-M_SQRT1_2)));
  return static_cast<T>(half * T(std::erfc(scaled)));
}

template <class T>
T GeluTanh(T x) {
  const T factor(static_cast<float>(M_2_SQRTPI * M_SQRT1_2));
  const T cube(T(x * x) * x);
  const T inner(factor * T(x + T(T(0.044715F) * cube)));
  return static_cast<T>(T(T(0.5F) * x) * T(1 + T(std::tanh(inner))));
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
    case tflite::kTfLiteBuiltinGelu:
      return op.params.as<GeluParams>().approximate ? MakeTypedUnaryMap<T, T>(op, GeluTanh<T>)
                                                    : MakeTypedUnaryMap<T, T>(op, Gelu<T>);
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

// What TFLite clamps sums and products of float16 to.
struct HalfRange {
  float low = -Half::kMax, high = Half::kMax;
  explicit HalfRange(const OpDescription& op) {
    float min, max;
    ActivationRange(op.params.as<ArithmeticParams>().activation, &min, &max);
    low = std::max(low, min);
    high = std::min(high, max);
  }
  // A NaN stays one.
  Half operator()(Half x) const {
    if (x < low) return Half(low);
    return x > high ? Half(high) : x;
  }
};

template <class T>
Result<std::unique_ptr<Kernel>> BuildExtreme(BinaryKind kind, const OpDescription& op) {
  // Of zeros, and where one is a NaN, the second.
  if (kind == BinaryKind::kMaximum) {
    return MakeTypedMap<T, T>(op, [](T x, T y) { return x > y ? x : y; });
  }
  if (kind == BinaryKind::kMinimum) {
    return MakeTypedMap<T, T>(op, [](T x, T y) { return x < y ? x : y; });
  }
  return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildShortFloatUnary(const OpDescription& op) {
  return op.inputs[0].type == DataType::kFloat16 ? BuildUnaryOf<Half>(op)
                                                 : BuildUnaryOf<BFloat16>(op);
}

Result<std::unique_ptr<Kernel>> BuildShortFloatBinary(BinaryKind kind, const OpDescription& op) {
  if (op.inputs[0].type == DataType::kBFloat16) return BuildExtreme<BFloat16>(kind, op);
  switch (kind) {
    case BinaryKind::kAdd:
      return MakeTypedMap<Half, Half>(
          op, [range = HalfRange(op)](float x, float y) { return range(Half(x + y)); });
    case BinaryKind::kMul:
      return MakeTypedMap<Half, Half>(
          op, [range = HalfRange(op)](float x, float y) { return range(Half(x * y)); });
    default: return BuildExtreme<Half>(kind, op);
  }
}

Result<std::unique_ptr<Kernel>> BuildComplexMul(const OpDescription& op) {
  using Complex = std::complex<float>;
  return MakeTypedMap<Complex, Complex>(op, [](Complex x, Complex y) { return x * y; });
}

}  // namespace fuselite::kernels
