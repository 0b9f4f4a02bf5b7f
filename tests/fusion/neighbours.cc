#include "tests/fusion/neighbours.h"

#include "tests/fusion/draft.h"

namespace fuselite::fusion::testing {

void ForEachNeighbour(const Graph& graph,
                      const std::function<void(const std::string& what, const Graph&)>& visit) {
  const Draft draft(graph);
  const Attempt attempt = Building(draft, visit);
  TryChangesOfValues(draft, attempt);
  TryChangesOfNodes(draft, attempt);
}

}  // namespace fuselite::fusion::testing
