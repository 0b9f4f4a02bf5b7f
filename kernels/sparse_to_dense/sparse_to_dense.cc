// SPARSE_TO_DENSE: (indices, shape, values, default): a tensor of the default, with the values, or
// one for all, at the indices: a number, a vector of them, or rows of at most four coordinates. Of
// indices that meet the last one counts.
#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

struct SparseToDenseParams {
  bool validate_indices;
};
constexpr Field kFields[] = {
    {"validate_indices", FieldKind::kBool, 0, offsetof(SparseToDenseParams, validate_indices),
     offsetof(tflite::TfLiteSparseToDenseParams, validate_indices)},
};

constexpr DataType kAny = DataType::kNone;
constexpr TypeRow Row(DataType type) { return {{kAny, kAny, type}, type}; }
constexpr TypeRow kTypes[] = {Row(DataType::kFloat32), Row(DataType::kInt32), Row(DataType::kInt64),
                              Row(DataType::kInt8), Row(DataType::kUInt8)};

bool IsIndex(DataType type) { return type == DataType::kInt32 || type == DataType::kInt64; }

// Coordinates of one index.
int Depth(const OpDescription& op) {
  const Shape& indices = op.inputs[0].shape;
  return indices.rank() < 2 ? 1 : indices[1];
}

Status InferSparseToDense(OpDescription& op) {
  const TensorInfo& indices = op.inputs[0];
  const TensorInfo& values = op.inputs[2];
  if (!IsIndex(indices.type) || !IsIndex(op.inputs[1].type)) {
    return Unsupported("does not take indices of ", DataTypeName(indices.type), " and a shape of ",
                       DataTypeName(op.inputs[1].type));
  }
  if (indices.shape.rank() > 2 || op.inputs[1].shape.rank() != 1 || values.shape.rank() > 1) {
    return InvalidArgument("indices ", indices.shape, ", shape ", op.inputs[1].shape, ", values ",
                           values.shape);
  }
  if (op.inputs[3].type != values.type || op.inputs[3].elements() != 1) {
    return InvalidArgument("the default must be one ", DataTypeName(values.type));
  }
  const int depth = Depth(op);
  const int64_t count = indices.shape.rank() == 0 ? 1 : indices.shape[0];
  if (op.inputs[1].shape[0] != depth || depth < 1 || depth > 4) {
    return InvalidArgument(depth, " coordinates for rank ", op.inputs[1].shape[0]);
  }
  if (values.shape.rank() == 1 && values.shape[0] != count) {
    return InvalidArgument(values.shape[0], " values for ", count, " indices");
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[1], "the shape", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, values.type, shape);
}

// T: the unsigned integer of the element's width. One unit.
template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  return MakeKernel(
      "sparse_to_dense " + std::string(DataTypeName(op.inputs[2].type)), {},
      [type = op.inputs[0].type, depth = Depth(op), count = op.inputs[0].elements() / Depth(op),
       step = op.inputs[2].shape.rank() == 0 ? 0 : 1,
       shape = op.outputs[0].shape](const KernelArgs& args, int64_t, int64_t) -> Status {
        auto* out = static_cast<T*>(args.outputs[0]);
        std::fill_n(out, shape.elements(), *static_cast<const T*>(args.inputs[3]));
        for (int64_t i = 0; i < count; ++i) {
          int64_t place = 0;
          for (int d = 0; d < depth; ++d) {
            const int64_t index = LoadIndex(type, args.inputs[0], i * depth + d);
            if (index < 0 || index >= shape[d]) {
              return InvalidArgument("index ", index, " is not in [0, ", shape[d], ")");
            }
            place = place * shape[d] + index;
          }
          out[place] = static_cast<const T*>(args.inputs[2])[i * step];
        }
        return Status();
      });
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("SPARSE_TO_DENSE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  switch (BitWidth(op.inputs[2].type)) {
    case 8: return BuildOf<uint8_t>(op);
    case 32: return BuildOf<uint32_t>(op);
    default: return BuildOf<uint64_t>(op);
  }
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& SparseToDenseOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SPARSE_TO_DENSE",
      .builtin_code = tflite::kTfLiteBuiltinSparseToDense,
      .options_type = 50,
      .max_version = 3,
      .fields = kFields,
      .params_bytes = sizeof(SparseToDenseParams),
      .struct_bytes = sizeof(tflite::TfLiteSparseToDenseParams),
      .min_inputs = 4,
      .max_inputs = 4,
      .types = kTypes,
      .limits = "rank 0 to 2 (the output's: 0 to 4); int32 and int64 indices; rank <= 4",
      .infer = InferSparseToDense,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
