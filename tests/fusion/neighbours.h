// Graphs that differ from another in one place: what a rewrite that looks too little would take for
// the pattern that it knows, and what one that looks too closely would not.
#pragma once

#include <functional>
#include <string>

#include "fusion/graph/graph.h"

namespace fuselite::fusion::testing {

// Calls `visit` for each: another reader of a value, a value that is state and written again,
// something behind an output, operands exchanged, coming from elsewhere, on another way, turned or
// repeating along a dimension, a sibling operator, another parameter, other constants, or none but
// in the run, other shapes, empty ones too, quantization and integer types. `what` says which.
// Those that the operators' shape rules refuse are left out.
void ForEachNeighbour(const Graph& graph,
                      const std::function<void(const std::string& what, const Graph&)>& visit);

// Calls `visit` for each graph that says the same in other words: operands exchanged where their
// order is none, axes and orders counted from the other end, shapes and the like in other numbers
// of bits.
void ForEachEquivalent(const Graph& graph,
                       const std::function<void(const std::string& what, const Graph&)>& visit);

}  // namespace fuselite::fusion::testing
