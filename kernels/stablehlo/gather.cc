// STABLEHLO_GATHER: (operand, start indices): for each vector of start indices the slice of the
// operand that begins there, moved back where it would reach beyond the end.
//
// The vectors lie along dimension index_vector_dim; entry i is an index into dimension
// start_index_map[i] of the operand. The slices' dimensions, without those in
// collapsed_slice_dims, which have one element, become the dimensions offset_dims of the output;
// its others are those of the start indices without the vectors'.
#include <algorithm>
#include <array>

#include "kernels/gather/gather.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

struct StablehloGatherParams {
  IntList offset_dims, collapsed_slice_dims, start_index_map, slice_sizes;
  int64_t index_vector_dim;
  bool indices_are_sorted;
};
using tflite::TfLiteStablehloGatherParams;
constexpr Field kFields[] = {
    {"offset_dims", FieldKind::kLongList, 0, offsetof(StablehloGatherParams, offset_dims),
     offsetof(TfLiteStablehloGatherParams, offset_dims),
     offsetof(TfLiteStablehloGatherParams, num_offset_dims)},
    {"collapsed_slice_dims", FieldKind::kLongList, 1,
     offsetof(StablehloGatherParams, collapsed_slice_dims),
     offsetof(TfLiteStablehloGatherParams, collapsed_slice_dims),
     offsetof(TfLiteStablehloGatherParams, num_collapsed_slice_dims)},
    {"start_index_map", FieldKind::kLongList, 2, offsetof(StablehloGatherParams, start_index_map),
     offsetof(TfLiteStablehloGatherParams, start_index_map),
     offsetof(TfLiteStablehloGatherParams, num_start_index_map)},
    {"index_vector_dim", FieldKind::kInt64, 3, offsetof(StablehloGatherParams, index_vector_dim),
     offsetof(TfLiteStablehloGatherParams, index_vector_dim)},
    {"slice_sizes", FieldKind::kLongList, 4, offsetof(StablehloGatherParams, slice_sizes),
     offsetof(TfLiteStablehloGatherParams, slice_sizes),
     offsetof(TfLiteStablehloGatherParams, num_slice_sizes)},
    {"indices_are_sorted", FieldKind::kBool, 5, offsetof(StablehloGatherParams, indices_are_sorted),
     offsetof(TfLiteStablehloGatherParams, indices_are_sorted)},
};

bool Contains(const IntList& list, int value) {
  return std::ranges::count(std::span(list.values).first(list.count), value) > 0;
}

Status CheckSlices(const OpDescription& op) {
  const auto& p = op.params.as<StablehloGatherParams>();
  const Shape& in = op.inputs[0].shape;
  if (p.slice_sizes.count != in.rank() ||
      p.offset_dims.count + p.collapsed_slice_dims.count != in.rank()) {
    return InvalidArgument("slices of ", p.slice_sizes.count, " dimensions, of which ",
                           p.offset_dims.count, " are kept and ", p.collapsed_slice_dims.count,
                           " are not, in an operand of ", in);
  }
  for (int d = 0; d < in.rank(); ++d) {
    const int32_t size = p.slice_sizes.values[d];
    if (size < 0 || size > in[d] || (Contains(p.collapsed_slice_dims, d) && size != 1)) {
      return InvalidArgument("a slice of ", size, " along dimension ", d, " of ", in);
    }
  }
  return Status();
}

// The dimensions of the start indices without that of the vectors.
std::vector<int64_t> BatchDims(const OpDescription& op) {
  const Shape& indices = op.inputs[1].shape;
  std::vector<int64_t> dims;
  for (int d = 0; d < indices.rank(); ++d) {
    if (d != op.params.as<StablehloGatherParams>().index_vector_dim) dims.push_back(indices[d]);
  }
  return dims;
}

Status InferStablehloGather(OpDescription& op) {
  const auto& p = op.params.as<StablehloGatherParams>();
  const TensorInfo& indices = op.inputs[1];
  if (indices.type != DataType::kInt32 && indices.type != DataType::kInt64) {
    return InvalidArgument("start indices of type ", DataTypeName(indices.type));
  }
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[0].type).status());
  FUSELITE_RETURN_IF_ERROR(CheckSlices(op));
  const int64_t axis = p.index_vector_dim;
  const bool scalars = axis == indices.shape.rank();
  if (axis < 0 || axis > indices.shape.rank() ||
      p.start_index_map.count != (scalars ? 1 : indices.shape[static_cast<int>(axis)])) {
    return InvalidArgument("vectors of ", p.start_index_map.count, " indices along dimension ",
                           axis, " of ", indices.shape);
  }
  for (const int32_t d : std::span(p.start_index_map.values).first(p.start_index_map.count)) {
    if (d < 0 || d >= op.inputs[0].shape.rank()) return InvalidArgument("an index into ", d);
  }
  const std::vector<int64_t> batch = BatchDims(op);
  std::vector<int64_t> slice;
  for (int d = 0; d < p.slice_sizes.count; ++d) {
    if (!Contains(p.collapsed_slice_dims, d)) slice.push_back(p.slice_sizes.values[d]);
  }
  std::vector<int64_t> dims;
  size_t of_batch = 0, of_slice = 0;
  while (of_batch + of_slice < batch.size() + slice.size()) {
    const bool offset = Contains(p.offset_dims, static_cast<int>(dims.size()));
    const bool left = offset ? of_slice < slice.size() : of_batch < batch.size();
    if (!left) return InvalidArgument("offset_dims do not fit ", slice.size(), " dimensions");
    dims.push_back(offset ? slice[of_slice++] : batch[of_batch++]);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

// One unit is one slice.
class StablehloGather {
 public:
  explicit StablehloGather(const OpDescription& op, const CopyLoops& loops)
      : p_(op.params.as<StablehloGatherParams>()),
        in_(op.inputs[0].shape),
        indices_(op.inputs[1].shape),
        index_type_(op.inputs[1].type),
        batch_(BatchDims(op)),
        in_strides_(ByteStrides(op.inputs[0])),
        slice_(PlanSlice(op), loops) {
    const auto strides = ByteStrides(op.outputs[0]);
    for (int d = 0; d < op.outputs[0].shape.rank(); ++d) {
      if (!Contains(p_.offset_dims, d)) batch_strides_.push_back(strides[d]);
    }
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t to = 0, rest = unit;
      for (int d = static_cast<int>(batch_.size()) - 1; d >= 0; --d) {
        to += rest % batch_[d] * batch_strides_[d];
        rest /= batch_[d];
      }
      const auto* from = static_cast<const std::byte*>(args.inputs[0]) + Start(args, unit);
      slice_.Run(from, static_cast<std::byte*>(args.outputs[0]) + to, 0, slice_.units());
    }
  }

 private:
  StridedCopy PlanSlice(const OpDescription& op) const {
    StridedCopy copy = MakePart(op, 0, 0).copy;
    const auto to = ByteStrides(op.outputs[0]);
    int offset = 0;
    for (int d = 0; d < in_.rank(); ++d) {
      if (Contains(p_.collapsed_slice_dims, d)) continue;
      while (!Contains(p_.offset_dims, offset)) ++offset;
      copy.Add(p_.slice_sizes.values[d], in_strides_[d], to[offset++]);
    }
    return copy;
  }

  // In bytes, of the slice that vector `unit` names.
  int64_t Start(const KernelArgs& args, int64_t unit) const {
    const auto axis = static_cast<int>(p_.index_vector_dim);
    const int64_t inner = axis < indices_.rank() ? indices_.elements(axis + 1, indices_.rank()) : 1;
    const int64_t length = p_.start_index_map.count;
    int64_t start = 0;
    for (int i = 0; i < length; ++i) {
      const int64_t place = unit / inner * inner * length + i * inner + unit % inner;
      const int d = p_.start_index_map.values[i];
      const int64_t last = in_[d] - p_.slice_sizes.values[d];
      start += std::clamp<int64_t>(LoadIndex(index_type_, args.inputs[1], place), 0, last) *
               in_strides_[d];
    }
    return start;
  }

  StablehloGatherParams p_;
  Shape in_, indices_;
  DataType index_type_;
  std::vector<int64_t> batch_, batch_strides_;
  std::array<int64_t, Shape::kMaxRank> in_strides_;
  CopyPlan slice_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("STABLEHLO_GATHER takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  int64_t units = op.outputs[0].elements() > 0 ? 1 : 0;
  for (const int64_t d : BatchDims(op)) units *= d;
  const int64_t slice = units > 0 ? op.outputs[0].elements() / units : 1;
  return MakeKernel("stablehlo_gather", {.units = units, .grain = GrainFor(slice)},
                    StablehloGather(op, ScalarCopyLoops()));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& StablehloGatherOperator() {
  static constexpr OperatorDef kDef = {
      .name = "STABLEHLO_GATHER",
      .builtin_code = tflite::kTfLiteBuiltinStablehloGather,
      .options_type = kSecondUnion + 16,
      .fields = kFields,
      .params_bytes = sizeof(StablehloGatherParams),
      .struct_bytes = sizeof(TfLiteStablehloGatherParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "elements of 1, 2, 4 or 8 bytes; int32 and int64 indices",
      .infer = InferStablehloGather,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
