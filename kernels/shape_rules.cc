#include "kernels/shape_rules.h"

#include <limits>

namespace fuselite::kernels {

namespace {

bool Takes(IntegerTypes types, DataType type) {
  switch (type) {
    case DataType::kInt8: return types == IntegerTypes::kSigned;
    case DataType::kInt16:
      return types == IntegerTypes::kSigned || types == IntegerTypes::kInt16Or32;
    case DataType::kInt32: return true;
    case DataType::kInt64:
      return types == IntegerTypes::kSigned || types == IntegerTypes::kInt32Or64;
    default: return false;
  }
}

}  // namespace

Result<std::vector<int64_t>> ReadIntegers(const TensorInfo& info, std::string_view what,
                                          IntegerTypes types) {
  if (!Takes(types, info.type)) return Unsupported(what, " is ", DataTypeName(info.type));
  const int64_t count = info.elements();
  // A value of no elements needs no bytes to be known.
  if (!info.constant() && count > 0) return DynamicShape("known at run time only: ", what);
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) {
    switch (info.type) {
      case DataType::kInt8: values[i] = LoadUnaligned<int8_t>(info.data, i); break;
      case DataType::kInt16: values[i] = LoadUnaligned<int16_t>(info.data, i); break;
      case DataType::kInt32: values[i] = LoadUnaligned<int32_t>(info.data, i); break;
      default: values[i] = LoadUnaligned<int64_t>(info.data, i); break;
    }
  }
  return values;
}

Result<int64_t> ReadInteger(const TensorInfo& info, std::string_view what, IntegerTypes types) {
  if (info.elements() != 1) {
    return InvalidArgument(what, " has ", info.elements(), " elements, expected 1");
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ReadIntegers(info, what, types));
  return values[0];
}

Result<int> ResolveAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " is out of range for rank ", rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<Shape> MakeShape(const std::vector<int64_t>& dims) {
  std::vector<int32_t> narrow;
  for (int64_t d : dims) {
    if (d < 0 || d > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("a dimension of ", d, " is not possible");
    }
    narrow.push_back(static_cast<int32_t>(d));
  }
  if (narrow.size() > Shape::kMaxRank) {
    return Unsupported("rank ", narrow.size(), " exceeds ", Shape::kMaxRank);
  }
  const std::optional<Shape> shape = Shape::FromDims(narrow);
  if (!shape) return InvalidArgument("the result has too many elements");
  return *shape;
}

Status RequireOutputType(const OpDescription& op, size_t i, DataType type) {
  const TensorInfo& output = op.outputs[i];
  if (output.absent() || output.type == type) return Status();
  return Unsupported("output ", i, " is ", DataTypeName(output.type), ", expected ",
                     DataTypeName(type));
}

Status SetOutput(OpDescription& op, size_t i, DataType type, const Shape& shape) {
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, i, type));
  op.outputs[i].type = type;
  op.outputs[i].shape = shape;
  return Status();
}

Status RequireSameQuantization(const TensorInfo& from, const TensorInfo& to) {
  const Quantization &a = from.quantization, &b = to.quantization;
  if (a.scale() == b.scale() && a.zero_point() == b.zero_point()) return Status();
  return InvalidArgument("scale ", a.scale(), " and zero point ", a.zero_point(), " become ",
                         b.scale(), " and ", b.zero_point(), " where values are only moved");
}

Status RequireKeptQuantization(const TensorInfo& from, const TensorInfo& to) {
  if (from.type == DataType::kInt16 && from.quantization.zero_point() != 0) {
    return InvalidArgument("the zero point of int16 is ", from.quantization.zero_point());
  }
  return RequireSameQuantization(from, to);
}

bool IsDense(const TensorInfo& info) {
  return info.shape.rank() == 0 || info.pitch() == info.shape.dim(-1);
}

Status RequireDense(const OpDescription& op) {
  for (const auto* operands : {&op.inputs, &op.outputs}) {
    for (const TensorInfo& info : *operands) {
      if (!IsDense(info)) return Unsupported(op.op->name, " takes no pitched rows");
    }
  }
  return Status();
}

Status RequireDenseInputs(const OpDescription& op, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    if (op.has_input(i) && !IsDense(op.inputs[i])) {
      return Unsupported(op.op->name, " takes no pitched rows in input ", i);
    }
  }
  return Status();
}

Result<int> ElementBytes(DataType type) {
  const int bits = BitWidth(type);
  if (bits < 8) return Unsupported("elements of type ", DataTypeName(type), " are not moved here");
  return bits / 8;
}

Status RequireSized(DataType type) {
  if (BitWidth(type) > 0) return Status();
  return Unsupported("elements of type ", DataTypeName(type), " are not moved here");
}

Status RequireAtMost8Bytes(DataType type) {
  if (BitWidth(type) <= 64) return Status();
  return Unsupported("does not take elements of type ", DataTypeName(type));
}

}  // namespace fuselite::kernels
