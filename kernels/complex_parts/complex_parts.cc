// REAL, IMAG and COMPLEX_ABS: a part, or the magnitude, of complex numbers.
#include <cmath>
#include <complex>

#include "kernels/costs.h"
#include "kernels/elementwise/typed_map.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kComplex64}, DataType::kFloat32},
                              {{DataType::kComplex128}, DataType::kFloat64}};

Status InferPart(OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("a tail behind ", op.op->name);
  const bool wide = op.inputs[0].type == DataType::kComplex128;
  return SetOutput(op, 0, wide ? DataType::kFloat64 : DataType::kFloat32, op.inputs[0].shape);
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildOf(const OpDescription& op) {
  using Complex = std::complex<T>;
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinReal:
      return MakeTypedUnaryMap<Complex, T>(op, [](Complex x) { return x.real(); });
    case tflite::kTfLiteBuiltinImag:
      return MakeTypedUnaryMap<Complex, T>(op, [](Complex x) { return x.imag(); });
    default: return MakeTypedUnaryMap<Complex, T>(op, [](Complex x) { return std::abs(x); });
  }
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  return op.inputs[0].type == DataType::kComplex128 ? BuildOf<double>(op) : BuildOf<float>(op);
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

OperatorDef Make(std::string_view name, int code) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.types = kTypes;
  def.infer = InferPart;
  def.candidates = kCandidates;
  def.cost = OutputElements;
  return def;
}

}  // namespace

const OperatorDef& ComplexAbsOperator() {
  static const OperatorDef kDef = Make("COMPLEX_ABS", tflite::kTfLiteBuiltinComplexAbs);
  return kDef;
}

const OperatorDef& ImagOperator() {
  static const OperatorDef kDef = Make("IMAG", tflite::kTfLiteBuiltinImag);
  return kDef;
}

const OperatorDef& RealOperator() {
  static const OperatorDef kDef = Make("REAL", tflite::kTfLiteBuiltinReal);
  return kDef;
}

}  // namespace fuselite::kernels
