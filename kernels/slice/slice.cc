#include "kernels/slice/slice.h"

#include <algorithm>

#include "kernels/shape_rules.h"
#include "kernels/slice/late.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

struct Box {
  std::vector<int64_t> begin, size;
};

Result<Box> ReadBox(const OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  Box box;
  FUSELITE_ASSIGN_OR_RETURN(
      box.begin, ReadIntegers(op.inputs[1], "the slice's begin", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(
      box.size, ReadIntegers(op.inputs[2], "the slice's size", IntegerTypes::kInt32Or64));
  const auto rank = static_cast<size_t>(in.rank());
  if (box.begin.size() != rank || box.size.size() != rank) {
    return InvalidArgument("begin and size must have ", rank, " entries");
  }
  for (int d = 0; d < in.rank(); ++d) {
    const int64_t begin = box.begin[d];
    int64_t& size = box.size[d];
    const bool inside = begin >= 0 && begin <= in[d];
    if (inside && size == -1) size = in[d] - begin;
    if (!inside || size < 0 || size > in[d] - begin) {
      return InvalidArgument("begin ", begin, " and size ", size, " leave dimension ", d, " of ",
                             in);
    }
  }
  return box;
}

// A begin that only a run tells leaves the shape known where all sizes are stated.
Result<std::vector<int64_t>> SizesOf(const OpDescription& op) {
  if (!op.inputs[1].constant() && !IsPacked(op.inputs[0].type)) {
    FUSELITE_ASSIGN_OR_RETURN(
        std::vector<int64_t> sizes,
        ReadIntegers(op.inputs[2], "the slice's size", IntegerTypes::kInt32Or64));
    const bool stated = std::ranges::count(sizes, -1) == 0;
    const auto rank = static_cast<size_t>(op.inputs[0].shape.rank());
    if (stated && sizes.size() == rank && op.inputs[1].elements() == op.inputs[2].elements()) {
      return sizes;
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(Box box, ReadBox(op));
  return std::move(box.size);
}

Status InferSlice(OpDescription& op) {
  const DataType type = op.inputs[0].type;
  if (type == DataType::kInt2 || type == DataType::kUInt4) {
    return Unsupported("does not take elements of type ", DataTypeName(type));
  }
  FUSELITE_RETURN_IF_ERROR(RequireSized(type));
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, type));
  if (op.inputs[1].type != op.inputs[2].type) {
    return InvalidArgument("begin is ", DataTypeName(op.inputs[1].type), ", the size ",
                           DataTypeName(op.inputs[2].type));
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(op));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(sizes));
  return SetOutput(op, 0, type, shape);
}

}  // namespace

Result<Movement> PlanSlice(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Box box, ReadBox(op));
  CopyPart part = MakePart(op, 0, 0);
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  for (size_t d = 0; d < box.size.size(); ++d) {
    part.copy.in_offset += box.begin[d] * from[d];
    part.copy.Add(box.size[d], from[d], to[d]);
  }
  return Movement{{part}};
}

const OperatorDef& SliceOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SLICE",
      .builtin_code = tflite::kTfLiteBuiltinSlice,
      .options_type = 48,
      .max_version = 8,
      .min_inputs = 3,
      .max_inputs = 3,
      .limits = "any type but string, uint4, int2 and complex128",
      .infer = InferSlice,
      .candidates = kSliceCandidates<PlanSlice>,
      .cost = MovementCost,
      .selects = true,
      .places = PlanSlice,
  };
  return kDef;
}

}  // namespace fuselite::kernels
