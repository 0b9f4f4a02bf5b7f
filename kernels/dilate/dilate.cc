// DILATE: (input, dilations, value): the input with dilations[d] - 1 elements of the value between
// neighbours of dimension d.
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

Result<std::vector<int64_t>> ReadDilations(const OpDescription& op) {
  const TensorInfo& dilations = op.inputs[1];
  const int rank = op.inputs[0].shape.rank();
  if (dilations.type != DataType::kInt32 || dilations.shape.rank() != 1 ||
      dilations.shape[0] != rank) {
    return InvalidArgument("the dilations must be ", rank, " of int32");
  }
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> values,
                            ReadIntegers(dilations, "the dilations", IntegerTypes::kInt32));
  for (const int64_t value : values) {
    if (value < 1) return InvalidArgument("a dilation of ", value, " is not possible");
  }
  return values;
}

Status InferDilate(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() < 1) return InvalidArgument("the input is a scalar");
  if (op.inputs[2].type != in.type || op.inputs[2].elements() < 1) {
    return InvalidArgument("the value between must be one ", DataTypeName(in.type));
  }
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, ReadDilations(op));
  std::vector<int64_t> dims;
  for (int d = 0; d < in.shape.rank(); ++d) {
    if (in.shape[d] == 0 && dilations[d] > 1) {
      return InvalidArgument("dimension ", d, " of the input is empty, its dilation ",
                             dilations[d]);
    }
    dims.push_back((in.shape[d] - 1) * dilations[d] + 1);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, in.type, shape);
}

// The elements with their steps; then, dimension by dimension, what lies between: of the outer
// dimensions only those positions that hold elements, of the inner ones all.
Result<Movement> PlanDilate(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, ReadDilations(op));
  const Shape& in = op.inputs[0].shape;
  const Shape& out = op.outputs[0].shape;
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  Movement movement{{MakePart(op, 0, 0)}};
  for (int d = 0; d < in.rank(); ++d) {
    movement.parts[0].copy.Add(in[d], from[d], to[d] * dilations[d]);
  }
  for (int gap = 0; gap < in.rank(); ++gap) {
    if (dilations[gap] == 1 || in[gap] == 1) continue;
    CopyPart fill = MakePart(op, 2, 0);
    for (int d = 0; d < gap; ++d) fill.copy.Add(in[d], 0, to[d] * dilations[d]);
    fill.copy.out_offset += to[gap];
    fill.copy.Add(in[gap] - 1, 0, to[gap] * dilations[gap]);
    fill.copy.Add(dilations[gap] - 1, 0, to[gap]);
    for (int d = gap + 1; d < in.rank(); ++d) fill.copy.Add(out[d], 0, to[d]);
    movement.parts.push_back(fill);
  }
  return movement;
}

}  // namespace

const OperatorDef& DilateOperator() {
  static constexpr OperatorDef kDef = {
      .name = "DILATE",
      .builtin_code = tflite::kTfLiteBuiltinDilate,
      .options_type = kSecondUnion + 18,
      .min_inputs = 3,
      .max_inputs = 3,
      .limits = "rank 1 or more; any type of 8 bits or more",
      .infer = InferDilate,
      .candidates = kMovementCandidates<PlanDilate>,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
