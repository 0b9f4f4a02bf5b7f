#include "kernels/placement.h"

#include "kernels/concatenation/concatenation.h"
#include "kernels/reshape/reshape.h"
#include "kernels/shape_rules.h"
#include "kernels/slice/slice.h"
#include "kernels/split/split.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

PlanMovement PlanOf(const OpDescription& op) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinConcatenation: return PlanConcatenation;
    case tflite::kTfLiteBuiltinPack: return PlanPack;
    case tflite::kTfLiteBuiltinSplit: return PlanSplit;
    case tflite::kTfLiteBuiltinSplitV: return PlanSplitV;
    case tflite::kTfLiteBuiltinUnpack: return PlanUnpack;
    case tflite::kTfLiteBuiltinSlice: return PlanSlice;
    case tflite::kTfLiteBuiltinStridedSlice: return PlanStridedSlice;
    case tflite::kTfLiteBuiltinReshape:
    case tflite::kTfLiteBuiltinSqueeze:
    case tflite::kTfLiteBuiltinExpandDims: return PlanReshape;
    default: return nullptr;
  }
}

// The row pitch that describes a part of shape `part` whose dimensions have these strides (in
// elements) within the whole.
Result<int64_t> PitchOf(const Shape& part, const std::array<int64_t, Shape::kMaxRank>& strides) {
  const int rank = part.rank();
  if (part.elements() == 0 || rank == 0) return 0;
  if (part.dim(-1) > 1 && strides[rank - 1] != 1) {
    return Unsupported("the elements of a row are not neighbours");
  }
  int64_t pitch = 0;  // not known yet: rows that are alone
  int64_t rows = 1;   // below dimension d
  for (int d = rank - 2; d >= 0; --d) {
    if (part[d] == 1) continue;
    if (pitch == 0) pitch = strides[d];
    if (strides[d] != pitch * rows) return Unsupported("the rows are not at a constant distance");
    rows *= part[d];
  }
  if (pitch < 0) return Unsupported("the rows are reversed");
  return pitch == part.dim(-1) ? 0 : pitch;
}

}  // namespace

Result<Placement> FindPlacement(const OpDescription& op) {
  const PlanMovement plan = PlanOf(op);
  if (plan == nullptr) return Unsupported(op.op->name, " is not done by addresses");
  if (plan != PlanReshape && IsPacked(op.outputs[0].type)) {
    return Unsupported("parts of packed integers may start within a byte");
  }
  OpDescription dense = op;
  Placement placement{plan == PlanConcatenation || plan == PlanPack, plan == PlanSplit ? 1 : 0, {}};
  for (TensorInfo& part : placement.parts_are_inputs ? dense.inputs : dense.outputs) {
    part.row_pitch = 0;
  }
  FUSELITE_ASSIGN_OR_RETURN(const Movement movement, plan(dense));
  for (const CopyPart& part : movement.parts) {
    const int operand = placement.parts_are_inputs ? part.input : part.output;
    const Shape& shape =
        placement.parts_are_inputs ? op.inputs[operand].shape : op.outputs[operand].shape;
    const int element = part.copy.element_bytes;
    std::array<int64_t, Shape::kMaxRank> strides{};
    if (plan == PlanReshape) {
      const TensorInfo& whole = op.inputs[0];
      if (!IsDense(whole) && (shape.rank() == 0 || shape.dim(-1) != whole.shape.dim(-1))) {
        return Unsupported("the whole is pitched and its rows change their length");
      }
      placement.parts.push_back({operand, 0, whole.row_pitch});
      continue;
    }
    for (int d = 0; d < part.copy.rank; ++d) {
      const StridedCopy::Dim& dim = part.copy.dims[d];
      strides[d] = (placement.parts_are_inputs ? dim.out_stride : dim.in_stride) / element;
    }
    FUSELITE_ASSIGN_OR_RETURN(const int64_t pitch, PitchOf(shape, strides));
    const int64_t offset = placement.parts_are_inputs ? part.copy.out_offset : part.copy.in_offset;
    placement.parts.push_back({operand, offset, pitch});
  }
  return placement;
}

}  // namespace fuselite::kernels
