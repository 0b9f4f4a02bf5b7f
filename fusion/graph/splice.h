// A graph inside another one.
#pragma once

#include <map>
#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// Appends the nodes of `body` to `graph`, where they stand for the host's `host_nodes`. `places`
// has for values of the body the values of the graph that stand for them: at least for those that
// the body's caller binds. The others are copied, and are nobody's input or output there.
void Splice(const Graph& body, std::map<ValueId, ValueId> places,
            const std::vector<int>& host_nodes, Graph& graph);

}  // namespace fuselite::fusion
