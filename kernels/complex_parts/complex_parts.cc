// REAL, IMAG and COMPLEX_ABS: a part, or the magnitude, of complex numbers.
#include <cmath>
#include <complex>

#include "kernels/complex_parts/magnitudes.h"
#include "kernels/costs.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/movement/movement.h"
#include "kernels/simd.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kComplex64}, DataType::kFloat32},
                              {{DataType::kComplex128}, DataType::kFloat64}};

Status InferPart(OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  const bool wide = op.inputs[0].type == DataType::kComplex128;
  return SetOutput(op, 0, wide ? DataType::kFloat64 : DataType::kFloat32, op.inputs[0].shape);
}

// A part is every second number.
Result<Movement> PlanPart(const OpDescription& op) {
  CopyPart part = MakePart(op, 0, 0);
  const auto from = ByteStrides(op.inputs[0]), to = ByteStrides(op.outputs[0]);
  const Shape& shape = op.inputs[0].shape;
  for (int d = 0; d < shape.rank(); ++d) part.copy.Add(shape[d], from[d], to[d]);
  const bool imaginary = op.op->builtin_code == tflite::kTfLiteBuiltinImag;
  if (imaginary) part.copy.in_offset = part.copy.element_bytes;
  return Movement{{part}};
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildAbsOf(const OpDescription& op) {
  return MakeTypedUnaryMap<std::complex<T>, T>(op, [](std::complex<T> x) { return std::abs(x); });
}

Result<std::unique_ptr<Kernel>> BuildAbs(const OpDescription& op, const BuildContext&) {
  return op.inputs[0].type == DataType::kComplex128 ? BuildAbsOf<double>(op)
                                                    : BuildAbsOf<float>(op);
}

Result<std::unique_ptr<Kernel>> BuildAbsHighway(const OpDescription& op,
                                                const BuildContext& context) {
  if (op.inputs[0].type != DataType::kComplex64) {
    return Unsupported("takes complex64, not ", DataTypeName(op.inputs[0].type));
  }
  MagnitudesFunction* const magnitudes = FindMagnitudes(context.isa);
  if (magnitudes == nullptr) return NoVectorTarget(context.isa);
  return MakeUnaryRows<std::complex<float>, float>(
      op, internal::Join(op.op->name, " complex64 ", SimdName(context.isa)), /*work=*/2,
      magnitudes);
}

constexpr Candidate kAbsCandidates[] = {{"highway", BuildAbsHighway}, {"reference", BuildAbs}};

constexpr OperatorDef Make(std::string_view name, int code,
                           std::span<const Candidate> candidates = kMovementCandidates<PlanPart>) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.types = kTypes;
  def.infer = InferPart;
  def.candidates = candidates;
  def.cost = OutputElements;
  return def;
}

}  // namespace

const OperatorDef& ComplexAbsOperator() {
  static constexpr OperatorDef kDef =
      Make("COMPLEX_ABS", tflite::kTfLiteBuiltinComplexAbs, kAbsCandidates);
  return kDef;
}

const OperatorDef& ImagOperator() {
  static constexpr OperatorDef kDef = Make("IMAG", tflite::kTfLiteBuiltinImag);
  return kDef;
}

const OperatorDef& RealOperator() {
  static constexpr OperatorDef kDef = Make("REAL", tflite::kTfLiteBuiltinReal);
  return kDef;
}

}  // namespace fuselite::kernels
