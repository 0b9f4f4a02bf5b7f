#include "kernels/reverse/reverse.h"

#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kSequenceFields[] = {
    {"seq_dim", FieldKind::kInt32, 0, offsetof(ReverseSequenceParams, seq_dim),
     offsetof(tflite::TfLiteReverseSequenceParams, seq_dim)},
    {"batch_dim", FieldKind::kInt32, 1, offsetof(ReverseSequenceParams, batch_dim),
     offsetof(tflite::TfLiteReverseSequenceParams, batch_dim)},
};

Result<unsigned> ReadAxes(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                            ReadIntegers(op.inputs[1], "the axes"));
  unsigned axes = 0;
  for (int64_t value : values) {
    FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(value, op.inputs[0].shape.rank()));
    if (axes & (1u << axis)) return InvalidArgument("axis ", axis, " is named twice");
    axes |= 1u << axis;
  }
  return axes;
}

Status InferReverse(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(ReadAxes(op).status());
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[0].type).status());
  return SetOutput(op, 0, op.inputs[0].type, op.inputs[0].shape);
}

Status InferReverseSequence(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& lengths = op.inputs[1];
  const auto& params = op.params.as<ReverseSequenceParams>();
  const int rank = in.shape.rank();
  if (params.seq_dim < 0 || params.seq_dim >= rank || params.batch_dim < 0 ||
      params.batch_dim >= rank || params.seq_dim == params.batch_dim) {
    return InvalidArgument("dimensions ", params.seq_dim, " and ", params.batch_dim,
                           " do not fit rank ", rank);
  }
  if (lengths.type != DataType::kInt32 && lengths.type != DataType::kInt64) {
    return InvalidArgument("the lengths are ", DataTypeName(lengths.type));
  }
  if (lengths.shape != Shape{in.shape[params.batch_dim]}) {
    return InvalidArgument("lengths ", lengths.shape, " for a batch of ",
                           in.shape[params.batch_dim]);
  }
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  return SetOutput(op, 0, in.type, in.shape);
}

constexpr Candidate kSequenceCandidates[] = {{"reference", BuildReverseSequence}};

}  // namespace

Result<Movement> PlanReverse(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const unsigned axes, ReadAxes(op));
  CopyPart part = MakePart(op, 0, 0);
  const Shape& shape = op.inputs[0].shape;
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reversed = axes & (1u << d);
    if (reversed) part.copy.in_offset += (shape[d] - 1) * from[d];
    part.copy.Add(shape[d], reversed ? -from[d] : from[d], to[d]);
  }
  return Movement{{part}};
}

Result<std::unique_ptr<Kernel>> BuildReverseSequence(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const TensorInfo& in = op.inputs[0];
  const auto& params = op.params.as<ReverseSequenceParams>();
  // Rows are what lies behind both dimensions; a unit is one row.
  const int rank = in.shape.rank();
  const int inner = std::max(params.seq_dim, params.batch_dim) + 1;
  const auto bytes = static_cast<size_t>(in.shape.elements(inner, rank) * BitWidth(in.type) / 8);
  const int64_t seq_size = in.shape[params.seq_dim];
  const int64_t batch_size = in.shape[params.batch_dim];
  const int64_t seq_stride = in.shape.elements(params.seq_dim + 1, inner);
  const int64_t batch_stride = in.shape.elements(params.batch_dim + 1, inner);
  return MakeKernel(
      "reverse_sequence " + std::string(DataTypeName(in.type)),
      {.units = bytes ? in.shape.elements(0, inner) : 0, .grain = GrainFor(bytes / 4 + 1)},
      [=, type = op.inputs[1].type](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
        const auto* from = static_cast<const std::byte*>(args.inputs[0]);
        auto* to = static_cast<std::byte*>(args.outputs[0]);
        for (int64_t row = begin; row < end; ++row) {
          const int64_t batch = row / batch_stride % batch_size;
          const int64_t position = row / seq_stride % seq_size;
          const int64_t length = LoadIndex(type, args.inputs[1], batch);
          if (length < 0 || length > seq_size) {
            return InvalidArgument("length ", length, " of sequence ", batch, " exceeds ",
                                   seq_size);
          }
          const int64_t source =
              position < length ? row + (length - 1 - 2 * position) * seq_stride : row;
          std::memcpy(to + row * bytes, from + source * bytes, bytes);
        }
        return Status();
      });
}

const OperatorDef& ReverseV2Operator() {
  static const OperatorDef kDef = {
      .name = "REVERSE_V2",
      .builtin_code = tflite::kTfLiteBuiltinReverseV2,
      .options_type = 81,
      .max_version = 4,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "any type of 8 bits or more",
      .infer = InferReverse,
      .candidates = kMovementCandidates<PlanReverse>,
      .cost = MovementCost,
      .selects = true,
  };
  return kDef;
}

const OperatorDef& ReverseSequenceOperator() {
  static const OperatorDef kDef = {
      .name = "REVERSE_SEQUENCE",
      .builtin_code = tflite::kTfLiteBuiltinReverseSequence,
      .options_type = 87,
      .max_version = 1,
      .fields = kSequenceFields,
      .params_bytes = sizeof(ReverseSequenceParams),
      .struct_bytes = sizeof(tflite::TfLiteReverseSequenceParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "any type of 8 bits or more",
      .infer = InferReverseSequence,
      .candidates = kSequenceCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
