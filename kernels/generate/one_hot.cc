#include <algorithm>

#include "kernels/generate/generate.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"axis", FieldKind::kInt32, 0, offsetof(OneHotParams, axis),
     offsetof(tflite::TfLiteOneHotParams, axis)},
};

Result<int> AxisOf(const OpDescription& op) {
  const int32_t axis = op.params.as<OneHotParams>().axis;
  const int rank = op.inputs[0].shape.rank();
  if (axis < -1 || axis > rank) return InvalidArgument("axis ", axis, " for rank ", rank);
  return axis == -1 ? rank : axis;
}

// The host has kernels for these only. The operands are indices, depth, on and off.
constexpr TypeRow Row(DataType on) { return {{DataType::kNone, DataType::kInt32, on}, on}; }
constexpr TypeRow kTypes[] = {Row(DataType::kFloat32), Row(DataType::kInt32), Row(DataType::kInt64),
                              Row(DataType::kInt8),    Row(DataType::kUInt8), Row(DataType::kBool)};

Status InferOneHot(OpDescription& op) {
  const TensorInfo& indices = op.inputs[0];
  if (indices.type != DataType::kInt32 && indices.type != DataType::kInt64) {
    return Unsupported("does not take indices of type ", DataTypeName(indices.type));
  }
  const TensorInfo& on = op.inputs[2];
  if (on.elements() != 1 || op.inputs[3].elements() != 1 || op.inputs[3].type != on.type) {
    return InvalidArgument("the on and off values must be scalars of one type");
  }
  FUSELITE_ASSIGN_OR_RETURN(const int axis, AxisOf(op));
  FUSELITE_ASSIGN_OR_RETURN(const int64_t depth,
                            ReadInteger(op.inputs[1], "the depth", IntegerTypes::kInt32));
  std::vector<int64_t> dims(indices.shape.dims().begin(), indices.shape.dims().end());
  dims.insert(dims.begin() + axis, depth);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  FUSELITE_RETURN_IF_ERROR(ElementBytes(on.type).status());
  return SetOutput(op, 0, on.type, shape);
}

// Blocks of [depth, after] for each index before the axis: all off, then one on in each column.
struct OneHotRows {
  const void* indices;
  DataType type;
  int64_t depth, after;

  template <class T>
  void Write(const KernelArgs& args, int64_t begin, int64_t end) const {
    const T on = LoadUnaligned<T>(args.inputs[2], 0), off = LoadUnaligned<T>(args.inputs[3], 0);
    for (int64_t before = begin; before < end; ++before) {
      T* const block = static_cast<T*>(args.outputs[0]) + before * depth * after;
      std::fill_n(block, depth * after, off);
      for (int64_t k = 0; k < after; ++k) {
        // The low 32 bits decide, as in TFLite.
        const auto index = static_cast<int32_t>(LoadIndex(type, indices, before * after + k));
        if (index >= 0 && index < depth) block[index * after + k] = on;
      }
    }
  }
};

constexpr Candidate kCandidates[] = {{"reference", BuildOneHot}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildOneHot(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("ONE_HOT takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, AxisOf(op));
  const Shape& indices = op.inputs[0].shape;
  const int64_t depth = op.outputs[0].shape[axis];
  const int64_t after = indices.elements(axis, indices.rank());
  const int64_t units = depth > 0 && after > 0 ? indices.elements(0, axis) : 0;
  return MakeKernel(
      "one_hot " + std::string(DataTypeName(op.outputs[0].type)),
      {.units = units, .grain = GrainFor(depth * after)},
      [=, type = op.inputs[0].type, bytes = BitWidth(op.outputs[0].type) / 8](
          const KernelArgs& args, int64_t begin, int64_t end) {
        const OneHotRows rows{args.inputs[0], type, depth, after};
        WithElement(bytes, [&](auto element) { rows.Write<decltype(element)>(args, begin, end); });
      });
}

const OperatorDef& OneHotOperator() {
  static constexpr OperatorDef kDef = {
      .name = "ONE_HOT",
      .builtin_code = tflite::kTfLiteBuiltinOneHot,
      .options_type = 61,
      .max_version = 1,
      .fields = kFields,
      .params_bytes = sizeof(OneHotParams),
      .struct_bytes = sizeof(tflite::TfLiteOneHotParams),
      .min_inputs = 4,
      .max_inputs = 4,
      .types = kTypes,
      .limits = "rank 0 to 15; int32 and int64 indices",
      .infer = InferOneHot,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
