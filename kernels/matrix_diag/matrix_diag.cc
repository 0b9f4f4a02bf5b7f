// MATRIX_DIAG: (diagonal [.., n]): square matrices [.., n, n] with that diagonal, zero elsewhere.
// MATRIX_SET_DIAG: (matrices [.., r, c], diagonal [.., min(r, c)]): the matrices with that
// diagonal.
#include <algorithm>

#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow Row(DataType type) { return {{type}, type}; }
constexpr TypeRow kTypes[] = {Row(DataType::kFloat32), Row(DataType::kInt64),
                              Row(DataType::kInt32),   Row(DataType::kInt16),
                              Row(DataType::kInt8),    Row(DataType::kUInt8)};

Status InferMatrixDiag(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  if (in.rank() < 1) return InvalidArgument("the diagonal is a scalar");
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims.push_back(in.dim(-1));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

Status InferMatrixSetDiag(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  const TensorInfo& diagonal = op.inputs[1];
  if (in.rank() < 2) return InvalidArgument("the input ", in, " is no matrix");
  const int64_t expected =
      in.elements(0, in.rank() - 2) * std::min<int64_t>(in.dim(-2), in.dim(-1));
  if (diagonal.type != op.inputs[0].type || diagonal.elements() != expected) {
    return InvalidArgument("a diagonal of ", DataTypeName(diagonal.type), diagonal.shape, " for ",
                           DataTypeName(op.inputs[0].type), in);
  }
  return SetOutput(op, 0, op.inputs[0].type, in);
}

// What dense output matrices are made of: `diagonal` gets its dimensions; the others are what lies
// between two elements of the diagonal (a row's length), and behind the last one.
struct Parts {
  CopyPart diagonal, between, behind;
};

Movement Fill(const OpDescription& op, Parts parts, int64_t step) {
  const Shape& out = op.outputs[0].shape;
  const int64_t rows = out.dim(-2), columns = out.dim(-1), size = rows * columns;
  const int64_t count = std::min(rows, columns), matrices = out.elements(0, out.rank() - 2);
  const int64_t bytes = parts.diagonal.copy.element_bytes;
  Movement movement;
  if (size == 0) return movement;
  parts.diagonal.copy.Add(matrices, count * bytes, size * bytes);
  parts.diagonal.copy.Add(count, bytes, (columns + 1) * bytes);
  movement.parts.push_back(parts.diagonal);
  // `step` is 1 where the others come from a tensor like the output, 0 where from one element.
  const auto add = [&](CopyPart& part, int64_t offset, int64_t runs, int64_t length) {
    part.copy.in_offset = offset * bytes * step;
    part.copy.out_offset = offset * bytes;
    part.copy.Add(matrices, size * bytes * step, size * bytes);
    part.copy.Add(runs, (columns + 1) * bytes * step, (columns + 1) * bytes);
    part.copy.Add(length, bytes * step, bytes);
    if (runs > 0 && length > 0) movement.parts.push_back(part);
  };
  add(parts.between, 1, count - 1, columns);
  const int64_t last = (count - 1) * (columns + 1) + 1;
  add(parts.behind, last, 1, size - last);
  return movement;
}

Result<Movement> PlanMatrixDiag(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const CopyPart zero = MakePart(op, CopyPart::kConstant, 0);
  return Fill(op, {MakePart(op, 0, 0), zero, zero}, 0);
}

Result<Movement> PlanMatrixSetDiag(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const CopyPart rest = MakePart(op, 0, 0);
  return Fill(op, {MakePart(op, 1, 0), rest, rest}, 1);
}

}  // namespace

const OperatorDef& MatrixDiagOperator() {
  static constexpr OperatorDef kDef = {
      .name = "MATRIX_DIAG",
      .builtin_code = tflite::kTfLiteBuiltinMatrixDiag,
      .options_type = 88,
      .types = kTypes,
      .limits = "rank 1 to 15",
      .infer = InferMatrixDiag,
      .candidates = kMovementCandidates<PlanMatrixDiag>,
      .cost = MovementCost,
  };
  return kDef;
}

const OperatorDef& MatrixSetDiagOperator() {
  static constexpr OperatorDef kDef = {
      .name = "MATRIX_SET_DIAG",
      .builtin_code = tflite::kTfLiteBuiltinMatrixSetDiag,
      .options_type = 90,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 2 or more",
      .infer = InferMatrixSetDiag,
      .candidates = kMovementCandidates<PlanMatrixSetDiag>,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
