// Operators that combine elements by what another subgraph computes of two of them: the subgraph is
// one operator, and stands for a function.
#pragma once

#include <optional>
#include <span>

#include "kernels/operator.h"

namespace fuselite::kernels {

// The subgraph that an operator of this kind names; nullopt where it is of another kind.
std::optional<int> RegionOf(const OperatorDef& op, const Params& params);

// Tells the operator what its subgraph computes: `codes` are the builtin codes of its nodes.
// kUnsupported where the subgraph is no function that LiteRT knows there.
Status ReadRegion(const OperatorDef& op, std::span<const int> codes, Params& params);

}  // namespace fuselite::kernels
