#include "kernels/movement/placement.h"

#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

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
  const OperatorDef& def = *op.op;
  if (def.places == nullptr) return Unsupported(def.name, " is not done by addresses");
  if (!def.reshapes && IsPacked(op.outputs[0].type)) {
    return Unsupported("parts of packed integers may start within a byte");
  }
  OpDescription dense = op;
  Placement placement{def.places_inputs, 0, {}};
  for (TensorInfo& part : placement.parts_are_inputs ? dense.inputs : dense.outputs) {
    part.row_pitch = 0;
  }
  FUSELITE_ASSIGN_OR_RETURN(const Movement movement, def.places(dense));
  if (!def.places_inputs && !movement.parts.empty()) placement.whole = movement.parts[0].input;
  for (const CopyPart& part : movement.parts) {
    const int operand = placement.parts_are_inputs ? part.input : part.output;
    const Shape& shape =
        placement.parts_are_inputs ? op.inputs[operand].shape : op.outputs[operand].shape;
    const int element = part.copy.element_bytes;
    std::array<int64_t, Shape::kMaxRank> strides{};
    if (def.reshapes) {
      const TensorInfo& whole = op.inputs[0];
      if (!IsDense(whole) && (shape.rank() == 0 || shape.dim(-1) != whole.shape.dim(-1))) {
        return Unsupported("the whole is pitched and its rows change their length");
      }
      placement.parts.push_back({operand, 0, whole.row_pitch});
      continue;
    }
    for (int d = 0; d < part.copy.rank(); ++d) {
      const CopyDim& dim = part.copy.dims[static_cast<size_t>(d)];
      strides[d] = (placement.parts_are_inputs ? dim.out_stride : dim.in_stride) / element;
    }
    FUSELITE_ASSIGN_OR_RETURN(const int64_t pitch, PitchOf(shape, strides));
    const int64_t offset = placement.parts_are_inputs ? part.copy.out_offset : part.copy.in_offset;
    placement.parts.push_back({operand, offset, pitch});
  }
  return placement;
}

}  // namespace fuselite::kernels
