// Elementwise nodes as stages of a fused tail.
#pragma once

#include <optional>
#include <vector>

#include "fusion/graph.h"

namespace fuselite::fusion {

// What a node does to the value that flows into it. A stage's operand.input is an index into
// `operands` here.
struct Stages {
  std::vector<kernels::TailStage> stages;
  std::vector<ValueId> operands;
  // What the stages' operands need of Tail::rows_per_batch; 0 where any will do.
  int64_t rows_per_batch = 0;
};

// The stages of the elementwise node `id` (its operator, its fused activation, its tail) when
// `flowing` is the input that comes out of a kernel's registers. nullopt where the node is not
// elementwise in it: the operand would have to be broadcast from the flowing value, a type is not
// float32, an activation has no stage.
std::optional<Stages> AsStages(const Graph& graph, NodeId id, ValueId flowing);

// How a tail walks over an operand of shape `operand` that is broadcast to `out`. nullopt where the
// operand is no pattern of whole batches, rows and channels.
struct OperandWalk {
  kernels::TailOperand strides;
  int64_t rows_per_batch = 0;  // 0: any
};
std::optional<OperandWalk> WalkOperand(const Shape& operand, const Shape& out);

// Appends `more` to the tail of `node`; its operands become inputs behind the operator's own. False
// where the two tails want different batches, or the operator takes any number of inputs and could
// not tell operands from its own.
bool AppendStages(const Stages& more, Node* node);

}  // namespace fuselite::fusion
