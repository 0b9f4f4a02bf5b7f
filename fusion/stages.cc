#include "fusion/stages.h"

#include <algorithm>

#include "fusion/match.h"
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/elementwise.h"

namespace fuselite::fusion {
namespace {

using kernels::TailStage;

bool AppendUnary(const kernels::OpDescription& op, Stages* stages) {
  if (op.op->name == kChain) return true;
  const std::optional<TailStage> stage = kernels::UnaryStage(op);
  if (stage) stages->tail.stages.push_back(*stage);
  return stage.has_value();
}

bool AppendBinary(const Node& node, const kernels::OpDescription& op, ValueId flowing,
                  Stages* stages) {
  if (node.inputs[0] == node.inputs[1]) {
    // A square; a value's difference with itself and the like are left alone.
    if (node.op->name != "MUL") return false;
    stages->tail.stages.push_back(TailStage::Unary(kernels::UnaryKind::kSquare));
  } else {
    const int flowing_input = node.inputs[0] == flowing ? 0 : 1;
    TailStage stage;
    int64_t rows_per_batch = 0;
    if (!kernels::ToTailStage(op, flowing_input, &stage, &rows_per_batch)) return false;
    stage.operand.input = static_cast<int>(stages->operands.size());
    stages->operands.push_back(node.inputs[1 - flowing_input]);
    kernels::AppendStage(stage, rows_per_batch, &stages->tail);
  }
  const std::optional<TailStage> activation = kernels::BinaryActivation(op);
  if (activation) stages->tail.stages.push_back(*activation);
  return true;
}

// Appends the stages of `tail`, whose operands are inputs of `node`.
bool AppendOwnTail(const Node& node, Stages* stages) {
  for (TailStage stage : node.tail.stages) {
    if (stage.operand.input >= 0) {
      stages->operands.push_back(node.inputs[stage.operand.input]);
      stage.operand.input = static_cast<int>(stages->operands.size()) - 1;
    }
    if (!kernels::AppendStage(stage, node.tail.rows_per_batch, &stages->tail)) return false;
  }
  return true;
}

}  // namespace

NodeId TailOwnerOf(const Graph& graph, NodeId id, ValueId flowing) {
  if (flowing == kNone || graph.SingleConsumer(flowing) != id) return kNone;
  const NodeId owner = graph.producer(flowing);
  if (owner == kNone) return kNone;
  const Node& node = graph.node(owner);
  const bool takes_tail = node.outputs.size() == 1 && (node.op->elementwise || node.op->takes_tail);
  return takes_tail ? owner : kNone;
}

std::optional<Stages> AsStages(const Graph& graph, NodeId id, ValueId flowing) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1 || !IsFloat(graph, node.outputs[0]) || !IsFloat(graph, flowing) ||
      graph.value(flowing).info.shape != graph.value(node.outputs[0]).info.shape) {
    return std::nullopt;
  }
  const size_t own = node.inputs.size() - static_cast<size_t>(node.tail_inputs);
  const auto own_end = node.inputs.begin() + static_cast<ptrdiff_t>(own);
  if (std::find(node.inputs.begin(), own_end, flowing) == own_end) return std::nullopt;
  const kernels::OpDescription op = graph.Describe(id);
  Stages stages;
  const bool appended = own == 1   ? AppendUnary(op, &stages)
                        : own == 2 ? AppendBinary(node, op, flowing, &stages)
                                   : false;
  if (!appended || !AppendOwnTail(node, &stages)) return std::nullopt;
  if (std::ranges::find(stages.operands, flowing) != stages.operands.end()) return std::nullopt;
  return stages;
}

bool AppendStages(const Stages& more, Node* node) {
  // A longer tail does not fit the code of a tile (75 TANH overflow that of a depthwise 9x9), and
  // chains of thousands of nodes would be planned anew with each.
  constexpr size_t kMostStages = 24;
  if (node->tail.stages.size() + more.tail.stages.size() > kMostStages) return false;
  if (!more.operands.empty()) {
    // Absent optional inputs are named, so that operands are not taken for them.
    node->inputs.resize(std::max<size_t>(node->inputs.size(), node->op->max_inputs), kNone);
  }
  const int first = static_cast<int>(node->inputs.size());
  node->inputs.insert(node->inputs.end(), more.operands.begin(), more.operands.end());
  node->tail_inputs += static_cast<int>(more.operands.size());
  for (TailStage stage : more.tail.stages) {
    if (stage.operand.input >= 0) stage.operand.input += first;
    if (!kernels::AppendStage(stage, more.tail.rows_per_batch, &node->tail)) return false;
  }
  return true;
}

}  // namespace fuselite::fusion
