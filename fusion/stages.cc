#include "fusion/stages.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "fusion/match.h"

namespace fuselite::fusion {
namespace {

using kernels::BinaryKind;
using kernels::TailStage;
using kernels::UnaryKind;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct UnaryOperator {
  std::string_view op;
  UnaryKind kind;
  float a = 0, b = 0;
};
constexpr UnaryOperator kUnary[] = {
    {"RELU", UnaryKind::kClamp, 0, kInfinity},
    {"RELU6", UnaryKind::kClamp, 0, 6},
    {"RELU_N1_TO_1", UnaryKind::kClamp, -1, 1},
    {"RELU_0_TO_1", UnaryKind::kClamp, 0, 1},
    {"LEAKY_RELU", UnaryKind::kLeakyRelu},
    {"ELU", UnaryKind::kElu},
    {"GELU", UnaryKind::kGelu},
    {"HARD_SWISH", UnaryKind::kHardSwish},
    {"LOGISTIC", UnaryKind::kLogistic},
    {"TANH", UnaryKind::kTanh},
    {"EXP", UnaryKind::kExp},
    {"LOG", UnaryKind::kLog},
    {"SQRT", UnaryKind::kSqrt},
    {"RSQRT", UnaryKind::kRsqrt},
    {"ABS", UnaryKind::kAbs},
    {"NEG", UnaryKind::kNeg},
    {"FLOOR", UnaryKind::kFloor},
    {"CEIL", UnaryKind::kCeil},
    {"ROUND", UnaryKind::kRound},
    {"SQUARE", UnaryKind::kSquare},
    {"SIN", UnaryKind::kSin},
    {"COS", UnaryKind::kCos},
    {"SIGN", UnaryKind::kSign},
};

// `reversed`: the flowing value is the second input.
struct BinaryOperator {
  std::string_view op;
  BinaryKind kind;
  std::optional<BinaryKind> reversed;
};
constexpr BinaryOperator kBinary[] = {
    {"ADD", BinaryKind::kAdd, BinaryKind::kAdd},
    {"SUB", BinaryKind::kSub, BinaryKind::kReverseSub},
    {"MUL", BinaryKind::kMul, BinaryKind::kMul},
    {"DIV", BinaryKind::kDiv, BinaryKind::kReverseDiv},
    {"MAXIMUM", BinaryKind::kMaximum, BinaryKind::kMaximum},
    {"MINIMUM", BinaryKind::kMinimum, BinaryKind::kMinimum},
    {"SQUARED_DIFFERENCE", BinaryKind::kSquaredDifference, BinaryKind::kSquaredDifference},
    {"PRELU", BinaryKind::kPrelu, std::nullopt},
};

const kernels::Field* FindField(const Node& node, std::string_view name) {
  for (const kernels::Field& field : node.op->fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

template <class T>
T FieldValue(const Node& node, std::string_view name) {
  T value{};
  if (const kernels::Field* field = FindField(node, name)) {
    std::memcpy(&value, static_cast<const std::byte*>(node.params.data()) + field->offset,
                sizeof value);
  }
  return value;
}

std::optional<TailStage> UnaryStage(const Node& node) {
  for (const UnaryOperator& entry : kUnary) {
    if (entry.op != node.op->name) continue;
    TailStage stage = TailStage::Unary(entry.kind, entry.a, entry.b);
    if (entry.kind == UnaryKind::kLeakyRelu) stage.a = FieldValue<float>(node, "alpha");
    if (entry.kind == UnaryKind::kGelu && FieldValue<bool>(node, "approximate")) {
      stage.unary = UnaryKind::kGeluTanh;
    }
    return stage;
  }
  return std::nullopt;
}

std::optional<BinaryKind> BinaryOf(std::string_view op, bool reversed) {
  for (const BinaryOperator& entry : kBinary) {
    if (entry.op == op) return reversed ? entry.reversed : std::optional(entry.kind);
  }
  return std::nullopt;
}

// A scalar operand as numbers in the stage: no pointer to carry, the same bits.
std::optional<TailStage> ScalarStage(BinaryKind kind, float y) {
  switch (kind) {
    case BinaryKind::kAdd: return TailStage::Unary(UnaryKind::kAffine, 1, y);
    case BinaryKind::kSub: return TailStage::Unary(UnaryKind::kAffine, 1, -y);
    case BinaryKind::kReverseSub: return TailStage::Unary(UnaryKind::kAffine, -1, y);
    case BinaryKind::kMul: return TailStage::Unary(UnaryKind::kAffine, y, 0);
    case BinaryKind::kMaximum: return TailStage::Unary(UnaryKind::kClamp, y, kInfinity);
    case BinaryKind::kMinimum: return TailStage::Unary(UnaryKind::kClamp, -kInfinity, y);
    case BinaryKind::kPrelu: return TailStage::Unary(UnaryKind::kLeakyRelu, y);
    default: return std::nullopt;
  }
}

// Where any batches would do, those that the others need: the walk goes on over their ends.
void FollowBatches(int64_t rows_per_batch, std::span<TailStage> stages) {
  for (TailStage& stage : stages) {
    stage.operand.batch_stride = rows_per_batch * stage.operand.row_stride;
  }
}

// One size of batches (0: any) for the stages `before` and `more`. False where they differ.
bool MergeBatches(int64_t* before_rows, std::span<TailStage> before, int64_t more_rows,
                  std::span<TailStage> more) {
  if (*before_rows == more_rows) return true;
  if (*before_rows != 0 && more_rows != 0) return false;
  if (more_rows == 0) {
    FollowBatches(*before_rows, more);
  } else {
    FollowBatches(more_rows, before);
    *before_rows = more_rows;
  }
  return true;
}

int64_t BatchesOf(const kernels::Tail& tail) {
  return tail.rows_per_batch == INT64_MAX ? 0 : tail.rows_per_batch;
}

bool AppendBinary(const Graph& graph, const Node& node, ValueId flowing, Stages* stages) {
  // x * x and the like: PRELU and division of a value by itself are left alone.
  if (node.inputs[0] == node.inputs[1]) {
    if (node.op->name != "MUL" || node.inputs[0] != flowing) return false;
    stages->stages.push_back(TailStage::Unary(UnaryKind::kSquare));
    return true;
  }
  const bool reversed = node.inputs[1] == flowing;
  const std::optional<BinaryKind> kind = BinaryOf(node.op->name, reversed);
  const ValueId other = node.inputs[reversed ? 0 : 1];
  if (!kind || !IsFloat(graph, other)) return false;
  if (const std::optional<float> scalar = ScalarConstant(graph, other)) {
    if (std::optional<TailStage> stage = ScalarStage(*kind, *scalar)) {
      stages->stages.push_back(*std::move(stage));
      return true;
    }
  }
  std::optional<OperandWalk> walk =
      WalkOperand(graph.value(other).info.shape, graph.value(node.outputs[0]).info.shape);
  if (!walk) return false;
  walk->strides.input = static_cast<int>(stages->operands.size());
  TailStage stage = TailStage::Binary(*kind, walk->strides);
  if (!MergeBatches(&stages->rows_per_batch, stages->stages, walk->rows_per_batch, {&stage, 1})) {
    return false;
  }
  stages->operands.push_back(other);
  stages->stages.push_back(std::move(stage));
  return true;
}

// The stages that the node itself carries, their operands renumbered.
bool AppendOwnTail(const Node& node, Stages* stages) {
  std::vector<TailStage> own = node.tail.stages;
  if (!MergeBatches(&stages->rows_per_batch, stages->stages, BatchesOf(node.tail), own)) {
    return false;
  }
  for (TailStage& stage : own) {
    if (stage.operand.input >= 0) {
      stages->operands.push_back(node.inputs[stage.operand.input]);
      stage.operand.input = static_cast<int>(stages->operands.size()) - 1;
    }
    stages->stages.push_back(std::move(stage));
  }
  return true;
}

size_t OwnInputs(const Node& node) {
  size_t own = node.inputs.size();
  for (const TailStage& stage : node.tail.stages) {
    if (stage.operand.input >= 0) own = std::min<size_t>(own, stage.operand.input);
  }
  return own;
}

}  // namespace

std::optional<OperandWalk> WalkOperand(const Shape& operand, const Shape& out) {
  if (operand.rank() > out.rank()) return std::nullopt;
  const int rank = out.rank(), missing = rank - operand.rank();
  // Per dimension of the output: 1 where the operand has it, 0 where it is broadcast, -1 either.
  std::vector<int> has(rank);
  for (int d = 0; d < rank; ++d) {
    const int32_t size = d < missing ? 1 : operand[d - missing];
    if (size != 1 && size != out[d]) return std::nullopt;
    has[d] = out[d] == 1 ? -1 : (size == 1 ? 0 : 1);
  }
  OperandWalk walk;
  if (rank == 0) return walk;
  walk.strides.channel_stride = has[rank - 1] == 1 ? 1 : 0;
  const int64_t width = operand.rank() ? operand.dim(-1) : 1;
  // Rows: a run of one kind from the inside, the batch; then a run of the other kind.
  int d = rank - 2;
  int inner = -1;
  int64_t inner_rows = 1;
  for (; d >= 0; --d) {
    if (has[d] != -1 && inner != -1 && has[d] != inner) break;
    if (has[d] != -1) inner = has[d];
    inner_rows *= out[d];
  }
  walk.strides.row_stride = inner == 1 ? width : 0;
  const int split = d;
  int outer = -1;
  for (; d >= 0; --d) {
    if (has[d] != -1 && outer != -1 && has[d] != outer) return std::nullopt;
    if (has[d] != -1) outer = has[d];
  }
  if (split < 0) {
    // One run: a full operand's batches follow each other whatever their length.
    return walk;
  }
  walk.rows_per_batch = inner_rows;
  walk.strides.batch_stride = outer == 1 ? (inner == 1 ? inner_rows * width : width) : 0;
  return walk;
}

std::optional<Stages> AsStages(const Graph& graph, NodeId id, ValueId flowing) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1 || !IsFloat(graph, node.outputs[0]) || !IsFloat(graph, flowing)) {
    return std::nullopt;
  }
  if (graph.value(flowing).info.shape != graph.value(node.outputs[0]).info.shape) {
    return std::nullopt;
  }
  Stages stages;
  const size_t own = OwnInputs(node);
  if (own == 1 && node.inputs[0] == flowing) {
    std::optional<TailStage> stage = UnaryStage(node);
    if (!stage) return std::nullopt;
    stages.stages.push_back(*std::move(stage));
  } else if (own == 2 && AppendBinary(graph, node, flowing, &stages)) {
    kernels::Tail activation;
    if (!kernels::AppendActivation(FusedActivation(node), &activation)) return std::nullopt;
    for (TailStage& stage : activation.stages) stages.stages.push_back(std::move(stage));
  } else {
    return std::nullopt;
  }
  if (!AppendOwnTail(node, &stages)) return std::nullopt;
  // The flowing value as an operand of a later stage would still have to be stored.
  if (std::ranges::find(stages.operands, flowing) != stages.operands.end()) return std::nullopt;
  return stages;
}

bool AppendStages(const Stages& more, Node* node) {
  kernels::Tail& tail = node->tail;
  int64_t rows_per_batch = BatchesOf(tail);
  std::vector<TailStage> stages = more.stages;
  if (!MergeBatches(&rows_per_batch, tail.stages, more.rows_per_batch, stages)) return false;
  if (!more.operands.empty() && OwnInputs(*node) == node->inputs.size()) {
    if (node->op->max_inputs < 0) return false;
    // Absent optional inputs are named, so that operands are not taken for them.
    node->inputs.resize(std::max<size_t>(node->inputs.size(), node->op->max_inputs), kNone);
  }
  const int first = static_cast<int>(node->inputs.size());
  node->inputs.insert(node->inputs.end(), more.operands.begin(), more.operands.end());
  for (TailStage& stage : stages) {
    if (stage.operand.input >= 0) stage.operand.input += first;
    tail.stages.push_back(std::move(stage));
  }
  if (rows_per_batch != 0) tail.rows_per_batch = rows_per_batch;
  return true;
}

}  // namespace fuselite::fusion
