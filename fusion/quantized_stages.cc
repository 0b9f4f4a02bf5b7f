#include "fusion/quantized_stages.h"

#include <algorithm>

#include "fusion/match.h"
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/quantized/quantized_binary.h"
#include "kernels/elementwise/tables/lookup_table.h"
#include "kernels/gemm/quantized_tail.h"

namespace fuselite::fusion {

using kernels::TailStage;

std::optional<Stages> AsQuantizedStages(const Graph& graph, NodeId id, ValueId flowing) {
  const Node& node = graph.node(id);
  const auto is_lookup = [](const TailStage& s) { return s.kind == TailStage::Kind::kLookup; };
  const bool tables = node.op->name == kChain && std::ranges::all_of(node.tail.stages, is_lookup);
  if (node.outputs.size() != 1 || !node.op->elementwise || (!node.tail.empty() && !tables)) {
    return std::nullopt;
  }
  const TensorInfo& output = graph.value(node.outputs[0]).info;
  if (!IsByte(output) || graph.value(flowing).info.shape != output.shape) return std::nullopt;
  Stages stages;
  if (tables) {
    stages.tail.stages = node.tail.stages;
    return stages;
  }
  const kernels::OpDescription op = graph.Describe(id);
  TailStage stage;
  if (node.inputs.size() == 1) {
    auto table = kernels::MakeLookupTable(op);
    if (!table.ok()) return std::nullopt;
    stage.kind = TailStage::Kind::kLookup;
    stage.table = std::move(*table);
    stages.tail.stages.push_back(std::move(stage));
    return stages;
  }
  if (node.inputs[0] == node.inputs[1]) return std::nullopt;
  const int flowing_input = node.inputs[0] == flowing ? 0 : 1;
  int64_t rows_per_batch = 0;
  if (!kernels::QuantizedSumStage(op, flowing_input, &stage, &rows_per_batch)) return std::nullopt;
  stage.operand.input = 0;
  stages.operands.push_back(node.inputs[1 - flowing_input]);
  kernels::AppendStage(stage, rows_per_batch, &stages.tail);
  return stages;
}

bool RequantizeInTail(const Graph& graph, NodeId id, Node* host) {
  if (!host->tail.empty()) return true;
  const kernels::OpDescription op = graph.Describe(id);
  const auto stage =
      kernels::RequantizeStage(op, FusedActivation(*host), op.outputs[0].shape.dim(-1));
  if (!stage.ok()) return false;
  host->tail.stages.push_back(*stage);
  return true;
}

}  // namespace fuselite::fusion
