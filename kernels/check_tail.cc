#include "kernels/check_tail.h"

#include <algorithm>

namespace fuselite::kernels {
namespace {

bool IsFloat(DataType type) { return type == DataType::kFloat32; }

// The type that flows out of a stage into which `in` flows, or kNone where it does not fit.
DataType TypeAfter(const TailStage& stage, DataType in, DataType output) {
  using Kind = TailStage::Kind;
  switch (stage.kind) {
    case Kind::kUnary:
    case Kind::kBinary: return IsFloat(in) ? in : DataType::kNone;
    case Kind::kRequantize:
    case Kind::kRescale: return in == DataType::kInt32 ? output : DataType::kNone;
    case Kind::kQuantizedAdd:
    case Kind::kLookup: return in == output && !IsFloat(in) ? in : DataType::kNone;
    case Kind::kDequantize: return IsFloat(in) ? DataType::kNone : DataType::kFloat32;
    case Kind::kQuantize: return IsFloat(in) ? output : DataType::kNone;
  }
  return DataType::kNone;
}

Status CheckOperand(const OpDescription& op, const TailStage& stage) {
  const TailOperand& y = stage.operand;
  if (y.input < 0 || y.input >= static_cast<int>(op.inputs.size())) {
    return Internal("tail stage ", stage.ToString(), " has no operand");
  }
  const TensorInfo& operand = op.inputs[y.input];
  const TensorInfo& out = op.outputs[0];
  const DataType expected = stage.kind == TailStage::Kind::kBinary ? DataType::kFloat32 : out.type;
  if (operand.type != expected) {
    return Unsupported("tail stage ", stage.ToString(), " has a ", DataTypeName(operand.type),
                       " operand");
  }
  const int64_t channels = out.shape.rank() ? out.shape.dim(-1) : 1;
  const int64_t rows = channels ? out.elements() / channels : 0;
  if (rows == 0) return Status();
  const int64_t per_batch = std::min(op.tail.rows_per_batch, rows);
  const int64_t last = (rows - 1) / per_batch * y.batch_stride + (per_batch - 1) * y.row_stride +
                       (channels - 1) * y.channel_stride;
  const int64_t width = operand.shape.rank() ? operand.shape.dim(-1) : 1;
  const int64_t extent = width ? (operand.elements() / width - 1) * operand.pitch() + width : 0;
  if (last >= extent) {
    return Internal("tail stage ", stage.ToString(), " reads element ", last, " of ", extent);
  }
  return Status();
}

}  // namespace

Status CheckTail(const OpDescription& op, DataType source_type) {
  const DataType output = op.outputs[0].type;
  DataType type = source_type;
  for (const TailStage& stage : op.tail.stages) {
    const DataType after = TypeAfter(stage, type, output);
    if (after == DataType::kNone) {
      return Unsupported("tail stage ", stage.ToString(), " does not take ", DataTypeName(type));
    }
    type = after;
    if (stage.operand.input >= 0 || stage.kind == TailStage::Kind::kBinary ||
        stage.kind == TailStage::Kind::kQuantizedAdd) {
      FUSELITE_RETURN_IF_ERROR(CheckOperand(op, stage));
    }
  }
  if (type != output) {
    return Unsupported("the tail gives ", DataTypeName(type), ", the output is ",
                       DataTypeName(output));
  }
  return Status();
}

}  // namespace fuselite::kernels
