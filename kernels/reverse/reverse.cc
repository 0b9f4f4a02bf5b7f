#include "kernels/reverse/reverse.h"

#include <algorithm>
#include <bit>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kSequenceFields[] = {
    {"seq_dim", FieldKind::kInt32, 0, offsetof(ReverseSequenceParams, seq_dim),
     offsetof(tflite::TfLiteReverseSequenceParams, seq_dim)},
    {"batch_dim", FieldKind::kInt32, 1, offsetof(ReverseSequenceParams, batch_dim),
     offsetof(tflite::TfLiteReverseSequenceParams, batch_dim)},
};

// The host has kernels for these only.
constexpr std::span<const TypeRow> kReverseTypes =
    kAlikeRows<DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16, DataType::kUInt8,
               DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64,
               DataType::kBool>;
constexpr std::span<const TypeRow> kSequenceTypes =
    kAlikeRows<DataType::kFloat32, DataType::kUInt8, DataType::kInt16, DataType::kInt32,
               DataType::kInt64>;

Result<unsigned> ReadAxes(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                            ReadIntegers(op.inputs[1], "the axes", IntegerTypes::kInt32));
  unsigned axes = 0;
  for (int64_t value : values) {
    FUSELITE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(value, op.inputs[0].shape.rank()));
    if (axes & (1u << axis)) return InvalidArgument("axis ", axis, " is named twice");
    axes |= 1u << axis;
  }
  return axes;
}

Status InferReverse(OpDescription& op) {
  const int rank = op.inputs[0].shape.rank();
  if (rank > 8) return InvalidArgument("rank ", rank, ", expected 8 at most");
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

namespace {

// Lines along the sequence: a unit is one, and both parts of it are rows of what lies behind both
// dimensions.
class SequenceKernel final : public Kernel {
 public:
  SequenceKernel(const OpDescription& op, std::string name, const CopyLoops& loops)
      : name_(std::move(name)), loops_(loops), index_type_(op.inputs[1].type) {
    const Shape& shape = op.inputs[0].shape;
    const auto& params = op.params.as<ReverseSequenceParams>();
    const int inner = std::max(params.seq_dim, params.batch_dim) + 1;
    bytes_ = shape.elements(inner, shape.rank()) * BitWidth(op.inputs[0].type) / 8;
    size_ = shape[params.seq_dim];
    batch_size_ = shape[params.batch_dim];
    stride_ = shape.elements(params.seq_dim + 1, inner);
    batch_stride_ = shape.elements(params.batch_dim + 1, inner);
    lines_ = bytes_ == 0 || size_ == 0 ? 0 : shape.elements(0, inner) / size_;
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return lines_; }
  int64_t grain(int) const override { return GrainFor(size_ * bytes_ / 4 + 1); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    const int64_t step = stride_ * bytes_;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t row = line / stride_ * size_ * stride_ + line % stride_;
      const int64_t batch = row / batch_stride_ % batch_size_;
      const int64_t length = LoadIndex(index_type_, args.inputs[1], batch);
      if (length < 0 || length > size_) {
        return InvalidArgument("length ", length, " of sequence ", batch, " exceeds ", size_);
      }
      const auto* in = static_cast<const std::byte*>(args.inputs[0]) + row * bytes_;
      auto* out = static_cast<std::byte*>(args.outputs[0]) + row * bytes_;
      if (length > 0) Reverse(in + (length - 1) * step, out, length);
      if (length < size_) Copy(in + length * step, out + length * step, size_ - length);
    }
    return Status();
  }

 private:
  // `last` is read downwards. Rows as wide as a register that follow each other are elements.
  void Reverse(const std::byte* last, std::byte* out, int64_t count) const {
    const bool elements = stride_ == 1 && bytes_ <= 8 && std::has_single_bit<uint64_t>(bytes_);
    if (elements) return loops_.reverse(last, out, {1, 0, 0}, count, static_cast<int>(bytes_));
    loops_.rows(last, out, {count, -stride_ * bytes_, stride_ * bytes_}, bytes_);
  }

  // Rows without gaps are one.
  void Copy(const std::byte* in, std::byte* out, int64_t count) const {
    if (stride_ == 1) return loops_.rows(in, out, {1, 0, 0}, count * bytes_);
    loops_.rows(in, out, {count, stride_ * bytes_, stride_ * bytes_}, bytes_);
  }

  std::string name_;
  CopyLoops loops_;
  DataType index_type_;
  int64_t bytes_, size_, batch_size_, stride_, batch_stride_, lines_;
};

Result<std::unique_ptr<Kernel>> MakeReverseSequence(const OpDescription& op,
                                                    const std::string& suffix,
                                                    const CopyLoops& loops) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return std::unique_ptr<Kernel>(std::make_unique<SequenceKernel>(
      op, "reverse_sequence " + std::string(DataTypeName(op.inputs[0].type)) + suffix, loops));
}

Result<std::unique_ptr<Kernel>> BuildReverseSequence(const OpDescription& op, const BuildContext&) {
  return MakeReverseSequence(op, "", ScalarCopyLoops());
}
Result<std::unique_ptr<Kernel>> BuildReverseSequenceHighway(const OpDescription& op,
                                                            const BuildContext& context) {
  if (!HasVectorCopyLoops(context.isa)) return NoVectorTarget(context.isa);
  return MakeReverseSequence(op, std::string(" ") + SimdName(context.isa),
                             CopyLoopsFor(context.isa));
}

constexpr Candidate kSequenceCandidates[] = {{"highway", BuildReverseSequenceHighway},
                                             {"reference", BuildReverseSequence}};

}  // namespace

const OperatorDef& ReverseV2Operator() {
  static constexpr OperatorDef kDef = {
      .name = "REVERSE_V2",
      .builtin_code = tflite::kTfLiteBuiltinReverseV2,
      .options_type = 81,
      .max_version = 4,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kReverseTypes,
      .limits = "rank <= 8",
      .infer = InferReverse,
      .candidates = kMovementCandidates<PlanReverse>,
      .cost = MovementCost,
      .selects = true,
  };
  return kDef;
}

const OperatorDef& ReverseSequenceOperator() {
  static constexpr OperatorDef kDef = {
      .name = "REVERSE_SEQUENCE",
      .builtin_code = tflite::kTfLiteBuiltinReverseSequence,
      .options_type = 87,
      .max_version = 1,
      .fields = kSequenceFields,
      .params_bytes = sizeof(ReverseSequenceParams),
      .struct_bytes = sizeof(tflite::TfLiteReverseSequenceParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kSequenceTypes,
      .infer = InferReverseSequence,
      .candidates = kSequenceCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
