// Elementwise nodes as stages of a fused tail.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// What a node does to the value that flows into it. A stage's operand.input is an index into
// `operands` here.
struct Stages {
  kernels::Tail tail;
  std::vector<ValueId> operands;
};

// The operator of chains: it gives its input as it is.
inline constexpr std::string_view kChain = "FUSELITE_ELEMENTWISE";

// The node whose tail could take `id` over, which alone reads its output `flowing`; kNone where
// there is none, or it reads the host's state and must not move behind what changes that.
NodeId TailOwnerOf(const Graph& graph, NodeId id, ValueId flowing);

// The stages of the elementwise node `id` (its operator, its fused activation, its tail) when
// `flowing` is the input that comes out of a kernel's registers. nullopt where the node is not
// elementwise in it: the flowing value would have to be broadcast or stored for a second use, a
// type is not float32.
std::optional<Stages> AsStages(const Graph& graph, NodeId id, ValueId flowing);

// Appends `more` to the tail of `node`; its operands become inputs behind the operator's own.
// False, and the node is undefined, where the two tails want different batches, or the operator
// takes any number of inputs and could not tell operands from its own.
bool AppendStages(const Stages& more, Node* node);

}  // namespace fuselite::fusion
