#include "kernels/arg_max/arg_max.h"

#include <cmath>
#include <limits>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kMaxFields[] = {
    {"output_type", FieldKind::kDataType, 0, offsetof(ArgMaxParams, output_type),
     offsetof(tflite::TfLiteArgMaxParams, output_type), -1, 1, 1},
};
constexpr Field kMinFields[] = {
    {"output_type", FieldKind::kDataType, 0, offsetof(ArgMaxParams, output_type),
     offsetof(tflite::TfLiteArgMinParams, output_type), -1, 1, 1},
};

constexpr TypeRow kTypes[] = {
    {{DataType::kFloat32}, DataType::kInt32}, {{DataType::kFloat32}, DataType::kInt64},
    {{DataType::kInt8}, DataType::kInt32},    {{DataType::kInt8}, DataType::kInt64},
    {{DataType::kUInt8}, DataType::kInt32},   {{DataType::kUInt8}, DataType::kInt64},
    {{DataType::kInt32}, DataType::kInt32},   {{DataType::kInt32}, DataType::kInt64},
    {{DataType::kBool}, DataType::kInt32},    {{DataType::kBool}, DataType::kInt64},
};

Result<int> AxisOf(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t axis,
                            ReadInteger(op.inputs[1], "the axis", IntegerTypes::kInt32Or64));
  return ResolveAxis(axis, op.inputs[0].shape.rank());
}

Status InferArgMax(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  const DataType type = op.params.as<ArgMaxParams>().output_type;
  if (type != DataType::kInt32 && type != DataType::kInt64) {
    return InvalidArgument("the result's type is ", DataTypeName(type), ", not int32 or int64");
  }
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, type));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, AxisOf(op));
  if (in[axis] == 0) return InvalidArgument("dimension ", axis, " of ", in, " is empty");
  // The host counts in 32 bits.
  for (const int64_t count :
       {in.elements(), in.elements(0, axis), in.elements(axis + 1, in.rank())}) {
    if (count > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("the dimensions of ", in, " are too large");
    }
  }
  Shape shape;
  for (int d = 0; d < in.rank(); ++d) {
    if (d != axis) shape.push_back(in[d]);
  }
  return SetOutput(op, 0, type, shape);
}

// The index of the extreme among the values from `line` on.
template <bool max, class T>
int64_t Extreme(const T* line, const ArgLines& lines) {
  int64_t best = 0;
  T value = line[0];
  for (int64_t i = 1; i < lines.size; ++i) {
    const T candidate = line[i * lines.stride];
    // The second comparison replaces a NaN by any number.
    const bool better = max ? candidate > value : candidate < value;
    if (better || (std::isnan(value) && !std::isnan(candidate))) {
      value = candidate;
      best = i;
    }
  }
  return best;
}

template <bool max, class T>
std::unique_ptr<Kernel> MakeExtreme(const OpDescription& op, const ArgLines& lines) {
  return MakeKernel(
      (max ? "arg_max " : "arg_min ") + std::string(DataTypeName(op.inputs[0].type)) + " reference",
      {.units = lines.units, .grain = GrainFor(lines.size)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const T*>(args.inputs[0]);
        const ArgOutput out{args.outputs[0], lines.wide};
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t outer = unit / lines.stride, inner = unit % lines.stride;
          const T* line = in + outer * lines.size * lines.stride + inner;
          out.Set(unit, Extreme<max>(line, lines));
        }
      });
}

template <bool max>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const ArgLines lines, ArgLinesOf(op));
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return MakeExtreme<max, float>(op, lines);
    case DataType::kInt8: return MakeExtreme<max, int8_t>(op, lines);
    case DataType::kInt32: return MakeExtreme<max, int32_t>(op, lines);
    default: return MakeExtreme<max, uint8_t>(op, lines);
  }
}

constexpr Candidate kMaxCandidates[] = {
    {"highway", BuildArgMaxHighway},
    {"reference", BuildArgMax},
};
constexpr Candidate kMinCandidates[] = {
    {"highway", BuildArgMinHighway},
    {"reference", BuildArgMin},
};

double ElementsOf(const OpDescription& op) { return static_cast<double>(op.inputs[0].elements()); }

}  // namespace

Result<ArgLines> ArgLinesOf(const OpDescription& op) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, AxisOf(op));
  const Shape& in = op.inputs[0].shape;
  return ArgLines{op.outputs[0].elements(), in[axis], in.elements(axis + 1, in.rank()),
                  op.outputs[0].type == DataType::kInt64};
}

Result<std::unique_ptr<Kernel>> BuildArgMax(const OpDescription& op, const BuildContext&) {
  return Build<true>(op);
}
Result<std::unique_ptr<Kernel>> BuildArgMin(const OpDescription& op, const BuildContext&) {
  return Build<false>(op);
}

const OperatorDef& ArgMaxOperator() {
  static constexpr OperatorDef kDef = {
      .name = "ARG_MAX",
      .builtin_code = tflite::kTfLiteBuiltinArgMax,
      .options_type = 40,
      .max_version = 3,
      .fields = kMaxFields,
      .params_bytes = sizeof(ArgMaxParams),
      .struct_bytes = sizeof(tflite::TfLiteArgMaxParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 1 or more",
      .infer = InferArgMax,
      .candidates = kMaxCandidates,
      .cost = ElementsOf,
  };
  return kDef;
}

const OperatorDef& ArgMinOperator() {
  static constexpr OperatorDef kDef = {
      .name = "ARG_MIN",
      .builtin_code = tflite::kTfLiteBuiltinArgMin,
      .options_type = 57,
      .max_version = 3,
      .fields = kMinFields,
      .params_bytes = sizeof(ArgMaxParams),
      .struct_bytes = sizeof(tflite::TfLiteArgMinParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 1 or more",
      .infer = InferArgMax,
      .candidates = kMinCandidates,
      .cost = ElementsOf,
  };
  return kDef;
}

}  // namespace fuselite::kernels
