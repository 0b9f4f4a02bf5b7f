#include "kernels/shape_rules.h"
#include "kernels/space/space.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kDepthToSpaceFields[] = {
    {"block_size", FieldKind::kInt32, 0, offsetof(BlockSizeParams, block_size),
     offsetof(tflite::TfLiteDepthToSpaceParams, block_size)},
};
constexpr Field kSpaceToDepthFields[] = {
    {"block_size", FieldKind::kInt32, 0, offsetof(BlockSizeParams, block_size),
     offsetof(tflite::TfLiteSpaceToDepthParams, block_size)},
};

// The host has kernels for these only.
constexpr std::span<const TypeRow> kTypes =
    kAlikeRows<DataType::kFloat32, DataType::kUInt8, DataType::kInt8, DataType::kInt32,
               DataType::kInt64>;

Result<int64_t> BlockOf(const OpDescription& op) {
  const int32_t block = op.params.as<BlockSizeParams>().block_size;
  if (op.inputs[0].shape.rank() != 4) return Unsupported("the input's rank is not 4");
  if (block < 1 || block > 1 << 15) return InvalidArgument("block size ", block);
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[0].type).status());
  return block;
}

Status InferDepthToSpace(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t b, BlockOf(op));
  const Shape& in = op.inputs[0].shape;
  if (in[3] % (b * b) != 0) {
    return InvalidArgument(in[3], " channels are no multiple of ", b * b);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in[0], in[1] * b, in[2] * b, in[3] / (b * b)}));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

Status InferSpaceToDepth(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t b, BlockOf(op));
  const Shape& in = op.inputs[0].shape;
  if (in[1] % b != 0 || in[2] % b != 0) {
    return InvalidArgument("height and width of ", in, " are no multiples of ", b);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in[0], in[1] / b, in[2] / b, in[3] * b * b}));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

// The six dimensions n, h, i, w, j, c with the strides of the deep and of the wide tensor.
struct Blocks {
  int64_t size[6], deep[6], wide[6];
};

Blocks BlocksOf(const TensorInfo& deep, const TensorInfo& wide, int64_t b) {
  const auto d = ByteStrides(deep);
  const auto w = ByteStrides(wide);
  const int64_t channels = wide.shape[3];
  return {{deep.shape[0], deep.shape[1], b, deep.shape[2], b, channels},
          {d[0], d[1], b * channels * d[3], d[2], channels * d[3], d[3]},
          {w[0], b * w[1], w[1], b * w[2], w[2], w[3]}};
}

}  // namespace

Result<Movement> PlanDepthToSpace(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t b, BlockOf(op));
  const Blocks blocks = BlocksOf(op.inputs[0], op.outputs[0], b);
  CopyPart part = MakePart(op, 0, 0);
  for (int d = 0; d < 6; ++d) part.copy.Add(blocks.size[d], blocks.deep[d], blocks.wide[d]);
  return Movement{{part}};
}

Result<Movement> PlanSpaceToDepth(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const int64_t b, BlockOf(op));
  const Blocks blocks = BlocksOf(op.outputs[0], op.inputs[0], b);
  CopyPart part = MakePart(op, 0, 0);
  for (int d = 0; d < 6; ++d) part.copy.Add(blocks.size[d], blocks.wide[d], blocks.deep[d]);
  return Movement{{part}};
}

const OperatorDef& DepthToSpaceOperator() {
  static constexpr OperatorDef kDef = {
      .name = "DEPTH_TO_SPACE",
      .builtin_code = tflite::kTfLiteBuiltinDepthToSpace,
      .options_type = 94,
      .max_version = 2,
      .fields = kDepthToSpaceFields,
      .params_bytes = sizeof(BlockSizeParams),
      .struct_bytes = sizeof(tflite::TfLiteDepthToSpaceParams),
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferDepthToSpace,
      .candidates = kMovementCandidates<PlanDepthToSpace>,
      .cost = MovementCost,
      .selects = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

const OperatorDef& SpaceToDepthOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SPACE_TO_DEPTH",
      .builtin_code = tflite::kTfLiteBuiltinSpaceToDepth,
      .options_type = 19,
      .max_version = 2,
      .fields = kSpaceToDepthFields,
      .params_bytes = sizeof(BlockSizeParams),
      .struct_bytes = sizeof(tflite::TfLiteSpaceToDepthParams),
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferSpaceToDepth,
      .candidates = kMovementCandidates<PlanSpaceToDepth>,
      .cost = MovementCost,
      .selects = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
