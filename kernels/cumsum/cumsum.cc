#include "kernels/cumsum/cumsum.h"

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"exclusive", FieldKind::kBool, 0, offsetof(CumsumParams, exclusive),
     offsetof(tflite::TfLiteCumsumParams, exclusive)},
    {"reverse", FieldKind::kBool, 1, offsetof(CumsumParams, reverse),
     offsetof(tflite::TfLiteCumsumParams, reverse)},
};

constexpr TypeRow kTypes[] = {
    {{DataType::kFloat32}, DataType::kFloat32},
    {{DataType::kInt32}, DataType::kInt32},
    {{DataType::kInt64}, DataType::kInt64},
};

Status InferCumsum(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CumsumAxis(op).status());
  return SetOutput(op, 0, op.inputs[0].type, op.inputs[0].shape);
}

// T: float, or the unsigned integer of the element's width.
template <class T>
std::unique_ptr<Kernel> MakeCumsum(const OpDescription& op, int axis) {
  const Shape& shape = op.inputs[0].shape;
  const int64_t size = shape[axis];
  const int64_t stride = shape.elements(axis + 1, shape.rank());
  const int64_t units = size ? shape.elements() / size : 0;
  return MakeKernel("cumsum " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = units, .grain = GrainFor(size)},
                    [=, params = op.params.as<CumsumParams>()](const KernelArgs& args,
                                                               int64_t begin, int64_t end) {
                      const auto* in = static_cast<const T*>(args.inputs[0]);
                      auto* out = static_cast<T*>(args.outputs[0]);
                      for (int64_t unit = begin; unit < end; ++unit) {
                        const int64_t line = unit / stride * size * stride + unit % stride;
                        T sum = 0;
                        for (int64_t i = 0; i < size; ++i) {
                          const int64_t at = line + (params.reverse ? size - 1 - i : i) * stride;
                          const T before = sum;
                          sum += in[at];
                          out[at] = params.exclusive ? before : sum;
                        }
                      }
                    });
}

constexpr Candidate kCandidates[] = {{"highway", BuildCumsumHighway}, {"reference", BuildCumsum}};

}  // namespace

Result<int> CumsumAxis(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t axis,
                            ReadInteger(op.inputs[1], "the axis", IntegerTypes::kInt32));
  return ResolveAxis(axis, op.inputs[0].shape.rank());
}

Result<std::unique_ptr<Kernel>> BuildCumsum(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("CUMSUM takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, CumsumAxis(op));
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return MakeCumsum<float>(op, axis);
    case DataType::kInt32: return MakeCumsum<uint32_t>(op, axis);
    default: return MakeCumsum<uint64_t>(op, axis);
  }
}

const OperatorDef& CumsumOperator() {
  static constexpr OperatorDef kDef = {
      .name = "CUMSUM",
      .builtin_code = tflite::kTfLiteBuiltinCumsum,
      .options_type = 102,
      .max_version = 1,
      .fields = kFields,
      .params_bytes = sizeof(CumsumParams),
      .struct_bytes = sizeof(tflite::TfLiteCumsumParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 1 or more",
      .infer = InferCumsum,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
