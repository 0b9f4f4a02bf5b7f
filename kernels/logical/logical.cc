// LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT of bool.
#include <functional>

#include "kernels/costs.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/elementwise/typed/typed_rows.h"
#include "kernels/numbers/truth.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kBinary[] = {{{DataType::kBool, DataType::kBool}, DataType::kBool}};
constexpr TypeRow kUnary[] = {{{DataType::kBool}, DataType::kBool}};

Status InferBinary(OpDescription& op) { return InferTypedMap(op, DataType::kBool); }

Status InferNot(OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind LOGICAL_NOT");
  return SetOutput(op, 0, DataType::kBool, op.inputs[0].shape);
}

Result<std::unique_ptr<Kernel>> BuildBinary(const OpDescription& op, const BuildContext&) {
  if (op.op->builtin_code == tflite::kTfLiteBuiltinLogicalAnd) {
    return MakeTypedMap<Truth, Truth>(op, std::logical_and<>());
  }
  return MakeTypedMap<Truth, Truth>(op, std::logical_or<>());
}

Result<std::unique_ptr<Kernel>> BuildNot(const OpDescription& op, const BuildContext&) {
  return MakeTypedUnaryMap<Truth, Truth>(op, std::logical_not<>());
}

Result<std::unique_ptr<Kernel>> BuildBinaryHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  const bool both = op.op->builtin_code == tflite::kTfLiteBuiltinLogicalAnd;
  return BuildTypedRows(both ? TypedFunction::kAnd : TypedFunction::kOr, op, context);
}

constexpr Candidate kBinaryCandidates[] = {{"highway", BuildBinaryHighway},
                                           {"reference", BuildBinary}};
constexpr Candidate kNotCandidates[] = {{"reference", BuildNot}};

constexpr OperatorDef MakeLogical(std::string_view name, int code, int options_type, int inputs) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.min_inputs = def.max_inputs = inputs;
  def.types = inputs == 1 ? std::span<const TypeRow>(kUnary) : kBinary;
  def.infer = inputs == 1 ? InferNot : InferBinary;
  def.candidates = inputs == 1 ? std::span<const Candidate>(kNotCandidates) : kBinaryCandidates;
  def.cost = OutputElements;
  def.commutes = inputs == 2;
  def.pointwise = true;
  return def;
}

}  // namespace

#define FUSELITE_LOGICAL(Name, NAME, options_type, inputs)                     \
  const OperatorDef& Name##Operator() {                                        \
    static constexpr OperatorDef kDef =                                        \
        MakeLogical(NAME, tflite::kTfLiteBuiltin##Name, options_type, inputs); \
    return kDef;                                                               \
  }

FUSELITE_LOGICAL(LogicalAnd, "LOGICAL_AND", 62, 2)
FUSELITE_LOGICAL(LogicalNot, "LOGICAL_NOT", 63, 1)
FUSELITE_LOGICAL(LogicalOr, "LOGICAL_OR", 60, 2)

#undef FUSELITE_LOGICAL

}  // namespace fuselite::kernels
