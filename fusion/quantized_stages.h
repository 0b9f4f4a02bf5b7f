// 8-bit elementwise nodes as stages of a product's tail.
#pragma once

#include <optional>

#include "fusion/stages.h"

namespace fuselite::fusion {

// AsStages() of an ADD, a SUB or a function of one value whose operands and output all have one
// 8-bit type; without a tail of its own.
std::optional<Stages> AsQuantizedStages(const Graph& graph, NodeId id, ValueId flowing);

// Gives `host`, a copy of the node that makes `output`, the requantization to it as the first stage
// of its tail, where it has no tail yet: the node's output is no longer what the operator's own
// requantization is made for. False for products of other than 8-bit integers. Precondition: `host`
// is a product (OperatorDef::product_inputs).
bool RequantizeInTail(const Graph& graph, NodeId id, Node* host);

}  // namespace fuselite::fusion
