#include "kernels/tile/tile.h"

#include <limits>

#include "kernels/shape_rules.h"
#include "kernels/tile/tiled_blocks.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

Status InferTile(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(in.type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, in.type));
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[1], "the multiples", IntegerTypes::kInt32Or64));
  if (static_cast<int>(dims.size()) != in.shape.rank()) {
    return InvalidArgument(dims.size(), " multiples for rank ", in.shape.rank());
  }
  for (int d = 0; d < in.shape.rank(); ++d) {
    if (dims[d] < 0 || dims[d] > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("a multiple of ", dims[d], " is not possible");
    }
    dims[d] *= in.shape[d];
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, in.type, shape);
}

Status InferBroadcastTo(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, in.type));
  if (op.inputs[1].shape.rank() != 1) {
    return InvalidArgument("the shape is of rank ", op.inputs[1].shape.rank(), ", not a vector");
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[1], "the shape", IntegerTypes::kInt32Or64));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  if (shape.rank() < in.shape.rank()) {
    return InvalidArgument("cannot broadcast ", in.shape, " to ", shape);
  }
  for (int d = 1; d <= in.shape.rank(); ++d) {
    if (in.shape.dim(-d) != 1 && in.shape.dim(-d) != shape.dim(-d)) {
      return InvalidArgument("cannot broadcast ", in.shape, " to ", shape);
    }
  }
  return SetOutput(op, 0, in.type, shape);
}

}  // namespace

Result<Movement> PlanTile(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  CopyPart part = MakePart(op, 0, 0);
  const auto from = ByteStrides(in);
  const auto to = ByteStrides(out);
  for (int d = 0; d < in.shape.rank(); ++d) {
    part.copy.Add(in.shape[d] ? out.shape[d] / in.shape[d] : 0, 0, in.shape[d] * to[d]);
    part.copy.Add(in.shape[d], from[d], to[d]);
  }
  return Movement{{part}};
}

Result<Movement> PlanBroadcastTo(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  CopyPart part = MakePart(op, 0, 0);
  const auto from = ByteStrides(in);
  const auto to = ByteStrides(out);
  const int added = out.shape.rank() - in.shape.rank();
  for (int d = 0; d < out.shape.rank(); ++d) {
    const bool repeated = d < added || in.shape[d - added] == 1;
    part.copy.Add(out.shape[d], repeated ? 0 : from[d - added], to[d]);
  }
  return Movement{{part}};
}

namespace {

Result<std::unique_ptr<Kernel>> BuildTileHighway(const OpDescription& op,
                                                 const BuildContext& context) {
  if (auto blocks = BuildTiledBlocks(op, context); blocks.ok()) return blocks;
  return BuildVectorMovement<PlanTile>(op, context);
}

constexpr Candidate kTileCandidates[] = {{"highway", BuildTileHighway},
                                         {"reference", BuildMovement<PlanTile>}};

}  // namespace

const OperatorDef& TileOperator() {
  static constexpr OperatorDef kDef = {
      .name = "TILE",
      .builtin_code = tflite::kTfLiteBuiltinTile,
      .options_type = 51,
      .max_version = 3,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "any type of 8 to 64 bits",
      .infer = InferTile,
      .candidates = kTileCandidates,
      .cost = MovementCost,
      .selects = true,
  };
  return kDef;
}

const OperatorDef& BroadcastToOperator() {
  static constexpr OperatorDef kDef = {
      .name = "BROADCAST_TO",
      .builtin_code = tflite::kTfLiteBuiltinBroadcastTo,
      .options_type = 104,
      .max_version = 4,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "any type of 8 bits or more",
      .infer = InferBroadcastTo,
      .candidates = kMovementCandidates<PlanBroadcastTo>,
      .cost = MovementCost,
      .selects = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
