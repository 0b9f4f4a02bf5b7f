#include <algorithm>
#include <limits>

#include "kernels/shape_rules.h"
#include "kernels/slice/late.h"
#include "kernels/slice/slice.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"begin_mask", FieldKind::kInt32, 0, offsetof(StridedSliceParams, begin_mask),
     offsetof(tflite::TfLiteStridedSliceParams, begin_mask)},
    {"end_mask", FieldKind::kInt32, 1, offsetof(StridedSliceParams, end_mask),
     offsetof(tflite::TfLiteStridedSliceParams, end_mask)},
    {"ellipsis_mask", FieldKind::kInt32, 2, offsetof(StridedSliceParams, ellipsis_mask),
     offsetof(tflite::TfLiteStridedSliceParams, ellipsis_mask)},
    {"new_axis_mask", FieldKind::kInt32, 3, offsetof(StridedSliceParams, new_axis_mask),
     offsetof(tflite::TfLiteStridedSliceParams, new_axis_mask)},
    {"shrink_axis_mask", FieldKind::kInt32, 4, offsetof(StridedSliceParams, shrink_axis_mask),
     offsetof(tflite::TfLiteStridedSliceParams, shrink_axis_mask)},
    {"offset", FieldKind::kBool, 5, offsetof(StridedSliceParams, offset),
     offsetof(tflite::TfLiteStridedSliceParams, offset), -1, 8},
};

constexpr int kNoInput = -1;

// What becomes of one dimension: of the input's, or of one that is added.
struct AxisSlice {
  int input = kNoInput;
  int64_t start = 0;
  int64_t stride = 1;
  int64_t size = 1;
  bool dropped = false;
};

struct Spec {
  StridedSliceParams params;
  std::vector<int64_t> begin, end, strides;

  static bool Bit(int32_t mask, size_t i) { return (static_cast<uint32_t>(mask) >> i) & 1; }
  bool is_ellipsis(size_t i) const { return Bit(params.ellipsis_mask, i); }
  bool is_new_axis(size_t i) const { return !is_ellipsis(i) && Bit(params.new_axis_mask, i); }
};

constexpr size_t kMostEntries = 31;

// Dimensions of the input that an entry stands for.
int NamedDimensions(const Spec& spec, size_t entries) {
  int named = 0;
  for (size_t i = 0; i < entries; ++i) named += !spec.is_ellipsis(i) && !spec.is_new_axis(i);
  return named;
}

// What can be said of so many entries without their values.
Status CheckMasks(const Spec& spec, size_t entries, int rank) {
  const StridedSliceParams& p = spec.params;
  if (p.offset && (p.begin_mask || p.end_mask || p.ellipsis_mask || p.new_axis_mask)) {
    return Unsupported("offset together with masks");
  }
  if (p.offset && static_cast<int>(entries) != rank) {
    return Unsupported("offset with fewer entries than dimensions");
  }
  int ellipses = 0;
  for (size_t i = 0; i < entries; ++i) ellipses += spec.is_ellipsis(i);
  if (ellipses > 1) return InvalidArgument("more than one ellipsis");
  const int named = NamedDimensions(spec, entries);
  if (named > rank) return InvalidArgument(named, " indices for rank ", rank);
  // The host lets an ellipsis stand for one dimension at least, at the cost of the last entry.
  if (ellipses == 1 && named == rank) {
    return Unsupported("does not take an ellipsis for no dimension");
  }
  return Status();
}

Result<Spec> ReadSpec(const OpDescription& op) {
  for (int i = 1; i <= 3; ++i) {
    if (op.inputs[i].type != DataType::kInt32) {
      return Unsupported("begin, end and strides are taken as int32 only");
    }
  }
  Spec spec{op.params.as<StridedSliceParams>(), {}, {}, {}};
  const int rank = op.inputs[0].shape.rank();
  // Before the entries are read, which a run may compute: what their number refuses is known now.
  const auto entries = static_cast<size_t>(std::max<int64_t>(op.inputs[1].elements(), 0));
  if (0 < entries && entries <= kMostEntries) {
    FUSELITE_RETURN_IF_ERROR(CheckMasks(spec, entries, rank));
  }
  FUSELITE_ASSIGN_OR_RETURN(spec.begin,
                            ReadIntegers(op.inputs[1], "the slice's begin", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(spec.end,
                            ReadIntegers(op.inputs[2], "the slice's end", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(
      spec.strides, ReadIntegers(op.inputs[3], "the slice's strides", IntegerTypes::kInt32));
  const size_t count = spec.begin.size();
  if (spec.end.size() != count || spec.strides.size() != count || count > kMostEntries) {
    return InvalidArgument("begin, end and strides have ", count, ", ", spec.end.size(), " and ",
                           spec.strides.size(), " entries, expected equally many up to 31");
  }
  FUSELITE_RETURN_IF_ERROR(CheckMasks(spec, count, rank));
  if (std::ranges::find(spec.strides, 0) != spec.strides.end()) {
    return InvalidArgument("a stride is 0");
  }
  return spec;
}

// Entry i of the specification on a dimension of `size` elements: Python's slicing, with begin and
// end clamped into the dimension.
Result<AxisSlice> SliceAxis(const Spec& spec, size_t i, int dim, int64_t size) {
  AxisSlice axis{.input = dim, .stride = spec.strides[i]};
  const bool forward = axis.stride > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? size : size - 1;
  const auto wrap = [&](int64_t x) { return std::clamp(x < 0 ? x + size : x, low, high); };
  axis.start = wrap(spec.begin[i]);
  if (Spec::Bit(spec.params.begin_mask, i)) axis.start = forward ? 0 : size - 1;
  if (Spec::Bit(spec.params.shrink_axis_mask, i)) {
    if (axis.start < 0 || axis.start >= size) {
      return InvalidArgument("index ", spec.begin[i], " is out of dimension ", dim, " of size ",
                             size);
    }
    axis.dropped = true;
    axis.stride = 1;
    return axis;
  }
  if (axis.stride == std::numeric_limits<int32_t>::min()) {
    return InvalidArgument("a stride of ", axis.stride, ", which has no positive counterpart");
  }
  // With an offset, the host takes the sizes as they stand, and clamps the elements only.
  if (spec.params.offset && (!forward || spec.end[i] < 0 || axis.start + spec.end[i] > size)) {
    return Unsupported("an offset end that leaves dimension ", dim);
  }
  int64_t end = wrap(spec.params.offset ? axis.start + spec.end[i] : spec.end[i]);
  if (Spec::Bit(spec.params.end_mask, i)) end = forward ? size : -1;
  const int64_t distance = forward ? end - axis.start : axis.start - end;
  const int64_t step = forward ? axis.stride : -axis.stride;
  axis.size = distance <= 0 ? 0 : (distance - 1) / step + 1;
  return axis;
}

Result<std::vector<AxisSlice>> ResolveAxes(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Spec spec, ReadSpec(op));
  const Shape& in = op.inputs[0].shape;
  const size_t count = spec.begin.size();
  const int named = NamedDimensions(spec, count);
  std::vector<AxisSlice> axes;
  int dim = 0;
  const auto whole = [&] {
    axes.push_back({.input = dim, .size = in[dim]});
    ++dim;
  };
  for (size_t i = 0; i < count; ++i) {
    if (spec.is_ellipsis(i)) {
      for (int k = in.rank() - named; k > 0; --k) whole();
    } else if (spec.is_new_axis(i)) {
      axes.push_back({});
    } else {
      FUSELITE_ASSIGN_OR_RETURN(const AxisSlice axis, SliceAxis(spec, i, dim, in[dim]));
      axes.push_back(axis);
      ++dim;
    }
  }
  while (dim < in.rank()) whole();
  return axes;
}

// As ResolveAxes(), for the shape alone, which needs neither begin nor end where each entry picks
// one index or takes the whole dimension: x[i], x[:, i].
Result<std::vector<AxisSlice>> ResolveSizes(const OpDescription& op) {
  const StridedSliceParams& p = op.params.as<StridedSliceParams>();
  const int64_t count = op.inputs[1].elements();
  const bool known = op.inputs[1].constant() && op.inputs[2].constant();
  if (known || !op.inputs[3].constant() || p.offset || IsPacked(op.inputs[0].type) || count > 31 ||
      op.inputs[2].elements() != count) {
    return ResolveAxes(op);
  }
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const bool whole = Spec::Bit(p.begin_mask, i) && Spec::Bit(p.end_mask, i);
    const bool free = Spec::Bit(p.ellipsis_mask | p.new_axis_mask | p.shrink_axis_mask, i);
    if (!whole && !free) return ResolveAxes(op);
  }
  const std::vector<int32_t> zeros(static_cast<size_t>(count));
  OpDescription from_zero = op;
  from_zero.inputs[1].data = from_zero.inputs[2].data = zeros.data();
  return ResolveAxes(from_zero);
}

Status InferStridedSlice(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[0].type).status());
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(op.inputs[0].type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, op.inputs[0].type));
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<AxisSlice> axes, ResolveSizes(op));
  std::vector<int64_t> dims;
  for (const AxisSlice& axis : axes) {
    if (!axis.dropped) dims.push_back(axis.size);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

}  // namespace

Result<Movement> PlanStridedSlice(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<AxisSlice> axes, ResolveAxes(op));
  CopyPart part = MakePart(op, 0, 0);
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  int out_dim = 0;
  for (const AxisSlice& axis : axes) {
    const int64_t stride = axis.input == kNoInput ? 0 : from[axis.input];
    part.copy.in_offset += axis.start * stride;
    // A stride beyond the dimension is never taken; leaving it out keeps the product in range.
    const int64_t step = axis.size > 1 ? axis.stride * stride : 0;
    if (!axis.dropped) part.copy.Add(axis.size, step, to[out_dim++]);
  }
  return Movement{{part}};
}

const OperatorDef& StridedSliceOperator() {
  static constexpr OperatorDef kDef = {
      .name = "STRIDED_SLICE",
      .builtin_code = tflite::kTfLiteBuiltinStridedSlice,
      .options_type = 32,
      .max_version = 8,
      .fields = kFields,
      .params_bytes = sizeof(StridedSliceParams),
      .struct_bytes = sizeof(tflite::TfLiteStridedSliceParams),
      .min_inputs = 4,
      .max_inputs = 4,
      .limits = "any type of 8 to 64 bits",
      .infer = InferStridedSlice,
      .candidates = kSliceCandidates<PlanStridedSlice>,
      .cost = MovementCost,
      .selects = true,
      .places = PlanStridedSlice,
  };
  return kDef;
}

}  // namespace fuselite::kernels
