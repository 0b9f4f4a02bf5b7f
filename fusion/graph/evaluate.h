// Running a node at compile time, on constants.
#pragma once

#include "fusion/graph/graph.h"
#include "runtime/cpu/isa.h"

namespace fuselite::fusion {

// The output values of a node whose inputs are all constant, with the bits of the operator's
// reference kernel: constants with storage of their own, otherwise like the node's outputs. The
// graph is unchanged. `isa`: what faster kernels may be made of, where they give these bits.
Result<std::vector<Value>> Evaluate(const Graph& graph, NodeId node, Isa isa = Isa::kScalar);

// Constants whose bytes are not aligned to their element get an aligned copy: kernels may rely on
// it, files do not promise it.
void AlignConstants(Graph& graph);

}  // namespace fuselite::fusion
