#include "kernels/elementwise/as_tail.h"

#include <algorithm>
#include <limits>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/broadcast_rows.h"
#include "kernels/elementwise/elementwise.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool HasOperand(const TailStage& stage) { return stage.operand.input >= 0; }

bool LeavesBatchOpen(const Tail& tail) { return tail.rows_per_batch == INT64_MAX; }

}  // namespace

std::optional<TailStage> UnaryStage(const OpDescription& op) {
  if (op.inputs.empty() || op.inputs[0].type != DataType::kFloat32) return std::nullopt;
  const auto stage = [](UnaryKind kind, float a = 0, float b = 0) {
    return TailStage::Unary(kind, a, b);
  };
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinRelu: return stage(UnaryKind::kClamp, 0, kInfinity);
    case tflite::kTfLiteBuiltinRelu6: return stage(UnaryKind::kClamp, 0, 6);
    case tflite::kTfLiteBuiltinReluN1To1: return stage(UnaryKind::kClamp, -1, 1);
    case tflite::kTfLiteBuiltinRelu0To1: return stage(UnaryKind::kClamp, 0, 1);
    case tflite::kTfLiteBuiltinLeakyRelu:
      return stage(UnaryKind::kLeakyRelu, op.params.as<LeakyReluParams>().alpha);
    case tflite::kTfLiteBuiltinElu: return stage(UnaryKind::kElu);
    case tflite::kTfLiteBuiltinGelu:
      return stage(op.params.as<GeluParams>().approximate ? UnaryKind::kGeluTanh
                                                          : UnaryKind::kGelu);
    case tflite::kTfLiteBuiltinHardSwish: return stage(UnaryKind::kHardSwish);
    case tflite::kTfLiteBuiltinLogistic: return stage(UnaryKind::kLogistic);
    case tflite::kTfLiteBuiltinTanh: return stage(UnaryKind::kTanh);
    case tflite::kTfLiteBuiltinExp: return stage(UnaryKind::kExp);
    case tflite::kTfLiteBuiltinLog: return stage(UnaryKind::kLog);
    case tflite::kTfLiteBuiltinSqrt: return stage(UnaryKind::kSqrt);
    case tflite::kTfLiteBuiltinRsqrt: return stage(UnaryKind::kRsqrt);
    case tflite::kTfLiteBuiltinAbs: return stage(UnaryKind::kAbs);
    case tflite::kTfLiteBuiltinNeg: return stage(UnaryKind::kNeg);
    case tflite::kTfLiteBuiltinFloor: return stage(UnaryKind::kFloor);
    case tflite::kTfLiteBuiltinCeil: return stage(UnaryKind::kCeil);
    case tflite::kTfLiteBuiltinRound: return stage(UnaryKind::kRound);
    case tflite::kTfLiteBuiltinSquare: return stage(UnaryKind::kSquare);
    case tflite::kTfLiteBuiltinSin: return stage(UnaryKind::kSin);
    case tflite::kTfLiteBuiltinCos: return stage(UnaryKind::kCos);
    case tflite::kTfLiteBuiltinSign: return stage(UnaryKind::kSign);
    default: break;
  }
  if (op.op->name == "FlexErf") return stage(UnaryKind::kErf);
  if (op.op->name == "FlexSoftsign") return stage(UnaryKind::kSoftsign);
  return std::nullopt;
}

std::optional<TailOperandUse> AsTailOperand(const TensorInfo& operand, const Shape& output) {
  const std::optional<BroadcastRows> rows = RowsBroadcastTo(operand, output);
  if (!rows || rows->runs.size() > 2) return std::nullopt;
  TailOperandUse use{.operand = {}, .rows_per_batch = INT64_MAX};
  use.operand.channel_stride = rows->channel_step;
  if (!rows->runs.empty()) use.operand.row_stride = rows->runs[0].step;
  if (rows->runs.size() == 2) {
    use.rows_per_batch = rows->runs[0].size;
    use.operand.batch_stride = rows->runs[1].step;
  }
  return use;
}

bool ToTailStage(const OpDescription& op, int flowing_input, TailStage* stage,
                 int64_t* rows_per_batch) {
  const std::optional<BinaryKind> kind = BinaryKindOf(*op.op);
  if (!kind || op.inputs.size() < 2) return false;
  const TensorInfo& x = op.inputs[flowing_input];
  const TensorInfo& y = op.inputs[1 - flowing_input];
  if (x.type != DataType::kFloat32 || y.type != DataType::kFloat32) return false;
  const Result<Shape> output = BroadcastShapes(x.shape, y.shape);
  if (!output.ok() || output.value() != x.shape) return false;
  BinaryKind effective = *kind;
  if (flowing_input == 1) {
    if (effective == BinaryKind::kPrelu) return false;
    effective = Reversed(effective);
  }
  const std::optional<TailOperandUse> use = AsTailOperand(y, x.shape);
  if (!use) return false;
  *stage = TailStage::Binary(effective, use->operand);
  stage->operand.input = 1 - flowing_input;
  *rows_per_batch = use->rows_per_batch;
  return true;
}

std::optional<TailStage> BinaryActivation(const OpDescription& op) {
  const std::optional<BinaryKind> kind = BinaryKindOf(*op.op);
  if (!kind || !HasActivation(*kind)) return std::nullopt;
  const Activation activation = op.params.as<ArithmeticParams>().activation;
  float low, high;
  if (activation == Activation::kNone || !ActivationRange(activation, &low, &high)) {
    return std::nullopt;
  }
  return TailStage::Unary(UnaryKind::kClamp, low, high);
}

void AppendBinaryRange(const OpDescription& op, Tail* tail) {
  if (!HasActivation(*BinaryKindOf(*op.op))) return;
  float low, high;
  ActivationRange(op.params.as<ArithmeticParams>().activation, &low, &high);
  tail->stages.push_back(TailStage::Unary(UnaryKind::kClamp, low, high));
}

namespace {

// A binary operator as its stage and its activation's.
StagesOnInput StagesOfBinary(const OpDescription& op, int flowing, const TailStage& stage,
                             int64_t rows_per_batch) {
  StagesOnInput result{.flowing = flowing, .stages = {}};
  AppendStage(stage, rows_per_batch, &result.stages);
  AppendBinaryRange(op, &result.stages);
  return result;
}

}  // namespace

std::optional<StagesOnInput> AsStagesOnInput(const OpDescription& op) {
  if (op.inputs.empty() || op.inputs[0].type != DataType::kFloat32) return std::nullopt;
  if (op.op == &ElementwiseOperator()) return StagesOnInput{};
  if (const std::optional<TailStage> unary = UnaryStage(op)) {
    return StagesOnInput{.flowing = 0, .stages = {{*unary}}};
  }
  if (!BinaryKindOf(*op.op)) return std::nullopt;
  for (const int flowing : {0, 1}) {
    TailStage stage;
    int64_t rows_per_batch;
    if (!ToTailStage(op, flowing, &stage, &rows_per_batch)) continue;
    return StagesOfBinary(op, flowing, stage, rows_per_batch);
  }
  return std::nullopt;
}

std::optional<StagesOnInput> AsStagesOnRows(const OpDescription& op) {
  if (std::optional<StagesOnInput> own = AsStagesOnInput(op)) return own;
  const std::optional<BinaryKind> kind = BinaryKindOf(*op.op);
  const auto is_float = [](const TensorInfo& info) { return info.type == DataType::kFloat32; };
  if (!kind || !std::ranges::all_of(op.inputs, is_float)) return std::nullopt;
  const Shape& output = op.outputs[0].shape;
  for (const int flowing : {0, 1}) {
    const Shape& rows = op.inputs[flowing].shape;
    if (rows.rank() == 0 || rows.dim(-1) != output.dim(-1)) continue;
    const std::optional<TailOperandUse> use = AsTailOperand(op.inputs[1 - flowing], output);
    if (!use) continue;
    TailStage stage = TailStage::Binary(flowing == 1 ? Reversed(*kind) : *kind, use->operand);
    stage.operand.input = 1 - flowing;
    return StagesOfBinary(op, flowing, stage, use->rows_per_batch);
  }
  return std::nullopt;
}

std::optional<TailOperand> PlaceRows(const TensorInfo& input, const Shape& output, Tail* tail) {
  TailOperandUse use{.operand = {.row_stride = input.pitch()}, .rows_per_batch = INT64_MAX};
  if (input.elements() != output.elements()) {
    const std::optional<TailOperandUse> repeated = AsTailOperand(input, output);
    if (!repeated || input.shape.rank() == 0 || input.shape.dim(-1) != output.dim(-1)) {
      return std::nullopt;
    }
    use = *repeated;
  }
  use.operand.input = 0;
  // As if a stage read it.
  if (!AppendStage(TailStage::Binary(BinaryKind::kAdd, use.operand), use.rows_per_batch, tail)) {
    return std::nullopt;
  }
  const TailOperand placed = tail->stages.back().operand;
  tail->stages.pop_back();
  return placed;
}

bool AppendStage(const TailStage& stage, int64_t rows_per_batch, Tail* tail) {
  TailStage appended = stage;
  if (HasOperand(stage) && rows_per_batch != tail->rows_per_batch) {
    if (LeavesBatchOpen(*tail)) {
      for (TailStage& earlier : tail->stages) {
        earlier.operand.batch_stride = rows_per_batch * earlier.operand.row_stride;
      }
      tail->rows_per_batch = rows_per_batch;
    } else if (rows_per_batch == INT64_MAX) {
      appended.operand.batch_stride = tail->rows_per_batch * stage.operand.row_stride;
    } else {
      return false;
    }
  }
  tail->stages.push_back(std::move(appended));
  return true;
}

}  // namespace fuselite::kernels
