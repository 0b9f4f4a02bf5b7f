#include <algorithm>

#include "kernels/shape_rules.h"
#include "kernels/space/space.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

// Every position of a block is a copy of its own.
constexpr int64_t kMostPositions = 4096;
constexpr int64_t kMostMargin = 1 << 30;

struct Blocking {
  std::vector<int64_t> block;    // of each of the M spatial dimensions, which are 1 .. M
  std::vector<int64_t> margins;  // before, after: paddings or crops
  int64_t positions = 1;         // the product of `block`
  int dims() const { return static_cast<int>(block.size()); }
};

Result<Blocking> ReadBlocking(const OpDescription& op) {
  Blocking b;
  const int rank = op.inputs[0].shape.rank();
  if (rank < 3 || rank > 4) return InvalidArgument("rank ", rank, ", expected 3 or 4");
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[0].type).status());
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(op.inputs[0].type));
  // Either may be known without the other.
  if (op.inputs[2].type != DataType::kInt32) return Unsupported("margins that are not int32");
  FUSELITE_ASSIGN_OR_RETURN(b.block,
                            ReadIntegers(op.inputs[1], "the block shape", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(b.margins,
                            ReadIntegers(op.inputs[2], "the margins", IntegerTypes::kInt32));
  if (b.dims() + 2 != rank || b.margins.size() != 2 * b.block.size()) {
    return InvalidArgument("a block of ", b.dims(), " dimensions with ", b.margins.size(),
                           " margins does not fit ", op.inputs[0].shape);
  }
  for (int64_t size : b.block) {
    if (size < 1 || size > kMostPositions) return InvalidArgument("a block size of ", size);
    b.positions *= size;
    if (b.positions > kMostPositions) {
      return Unsupported("does not take blocks of more than ", kMostPositions, " positions");
    }
  }
  for (int64_t margin : b.margins) {
    if (margin < 0 || margin > kMostMargin) return InvalidArgument("a margin of ", margin);
  }
  return b;
}

Status InferSpaceToBatchNd(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, op.inputs[0].type));
  FUSELITE_RETURN_IF_ERROR(RequireKeptQuantization(op.inputs[0], op.outputs[0]));
  FUSELITE_ASSIGN_OR_RETURN(const Blocking b, ReadBlocking(op));
  const Shape& in = op.inputs[0].shape;
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims[0] *= b.positions;
  for (int m = 0; m < b.dims(); ++m) {
    const int64_t padded = dims[m + 1] + b.margins[2 * m] + b.margins[2 * m + 1];
    if (padded % b.block[m] != 0) {
      return InvalidArgument("the padded size ", padded, " is no multiple of ", b.block[m]);
    }
    dims[m + 1] = padded / b.block[m];
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

Status InferBatchToSpaceNd(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, op.inputs[0].type));
  FUSELITE_RETURN_IF_ERROR(RequireKeptQuantization(op.inputs[0], op.outputs[0]));
  FUSELITE_ASSIGN_OR_RETURN(const Blocking b, ReadBlocking(op));
  const Shape& in = op.inputs[0].shape;
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  if (dims[0] % b.positions != 0) {
    return InvalidArgument("batch ", dims[0], " is no multiple of ", b.positions);
  }
  dims[0] /= b.positions;
  for (int m = 0; m < b.dims(); ++m) {
    dims[m + 1] = dims[m + 1] * b.block[m] - b.margins[2 * m] - b.margins[2 * m + 1];
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

// The tensor of many small images ("blocked") and that of few large ones ("spatial"), which share
// the dimensions behind the spatial ones.
struct Pair {
  const TensorInfo& blocked;
  const TensorInfo& spatial;
};

// One position of the blocks: where its elements are in either tensor.
struct Position {
  int64_t blocked_offset = 0, spatial_offset = 0;  // bytes
  std::vector<Extent> inside;  // of each spatial dimension of `blocked`: what `spatial` has
};

Position Locate(const Blocking& b, const Pair& pair, int64_t position) {
  const auto blocked = ByteStrides(pair.blocked);
  const auto spatial = ByteStrides(pair.spatial);
  Position result;
  result.inside.resize(b.dims());
  result.blocked_offset = position * pair.spatial.shape[0] * blocked[0];
  for (int m = b.dims() - 1; m >= 0; --m) {
    const int64_t block = b.block[m];
    const int64_t size = pair.spatial.shape[m + 1];
    const int64_t total = pair.blocked.shape[m + 1];
    const int64_t first = position % block - b.margins[2 * m];  // of index 0; then every block
    position /= block;
    const int64_t begin = std::min(first < 0 ? (-first + block - 1) / block : 0, total);
    const int64_t end =
        std::clamp(size > first ? (size - first + block - 1) / block : 0, begin, total);
    result.inside[m] = {total, begin, end - begin};
    result.spatial_offset += (first + begin * block) * spatial[m + 1];
  }
  return result;
}

// The copy between the two at `position`, in the direction given.
CopyPart CopyAt(const OpDescription& op, const Blocking& b, const Pair& pair,
                const Position& position, bool to_blocked) {
  CopyPart part = MakePart(op, 0, 0);
  const auto blocked = ByteStrides(pair.blocked);
  const auto spatial = ByteStrides(pair.spatial);
  const auto add = [&](int64_t size, int64_t in_blocked, int64_t in_spatial) {
    part.copy.Add(size, to_blocked ? in_spatial : in_blocked, to_blocked ? in_blocked : in_spatial);
  };
  int64_t offset = position.blocked_offset;
  add(pair.spatial.shape[0], blocked[0], spatial[0]);
  for (int d = 1; d < pair.spatial.shape.rank(); ++d) {
    if (d <= b.dims()) {
      offset += position.inside[d - 1].begin * blocked[d];
      add(position.inside[d - 1].size, blocked[d], b.block[d - 1] * spatial[d]);
    } else {
      add(pair.spatial.shape[d], blocked[d], spatial[d]);
    }
  }
  part.copy.in_offset = to_blocked ? position.spatial_offset : offset;
  part.copy.out_offset = to_blocked ? offset : position.spatial_offset;
  return part;
}

}  // namespace

Result<Movement> PlanSpaceToBatchNd(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Blocking b, ReadBlocking(op));
  const TensorInfo& out = op.outputs[0];
  const Pair pair{out, op.inputs[0]};
  const auto to = ByteStrides(out);
  Movement movement;
  for (int64_t p = 0; p < b.positions; ++p) {
    const Position position = Locate(b, pair, p);
    movement.parts.push_back(CopyAt(op, b, pair, position, true));
    CopyPart fill = MakePart(op, CopyPart::kConstant, 0);
    fill.copy.out_offset = position.blocked_offset;
    const int32_t zero = BitWidth(out.type) <= 16 ? out.quantization.zero_point() : 0;
    std::memcpy(fill.constant.data(), &zero, sizeof zero);
    // Images, then the spatial dimensions, then the rest.
    const int64_t images = op.inputs[0].shape[0];
    std::vector<Extent> extents = {{images, 0, images}};
    extents.insert(extents.end(), position.inside.begin(), position.inside.end());
    for (int d = b.dims() + 1; d < out.shape.rank(); ++d) {
      extents.push_back({out.shape[d], 0, out.shape[d]});
    }
    FillAround(fill, extents, {to.begin(), to.begin() + out.shape.rank()}, &movement);
  }
  return movement;
}

Result<Movement> PlanBatchToSpaceNd(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Blocking b, ReadBlocking(op));
  const Pair pair{op.inputs[0], op.outputs[0]};
  Movement movement;
  for (int64_t p = 0; p < b.positions; ++p) {
    movement.parts.push_back(CopyAt(op, b, pair, Locate(b, pair, p), false));
  }
  return movement;
}

const OperatorDef& SpaceToBatchNdOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SPACE_TO_BATCH_ND",
      .builtin_code = tflite::kTfLiteBuiltinSpaceToBatchNd,
      .options_type = 25,
      .max_version = 4,
      .min_inputs = 3,
      .max_inputs = 3,
      .limits = "rank 3 to 4; any type of 8 to 64 bits; blocks of at most 4096 positions",
      .infer = InferSpaceToBatchNd,
      .candidates = kMovementCandidates<PlanSpaceToBatchNd>,
      .cost = MovementCost,
      .selects = true,
  };
  return kDef;
}

const OperatorDef& BatchToSpaceNdOperator() {
  static constexpr OperatorDef kDef = {
      .name = "BATCH_TO_SPACE_ND",
      .builtin_code = tflite::kTfLiteBuiltinBatchToSpaceNd,
      .options_type = 24,
      .max_version = 4,
      .min_inputs = 3,
      .max_inputs = 3,
      .limits = "rank 3 to 4; any type of 8 to 64 bits; blocks of at most 4096 positions",
      .infer = InferBatchToSpaceNd,
      .candidates = kMovementCandidates<PlanBatchToSpaceNd>,
      .cost = MovementCost,
      .selects = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
