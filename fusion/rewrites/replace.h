// Putting one node in the place of a recognized pattern.
#pragma once

#include <string_view>
#include <vector>

#include "fusion/rewrite.h"

namespace fuselite::fusion {

// A node of the operator `name` with default parameters, no tail, and `inputs`. Precondition: the
// operator exists.
Node MakeNode(std::string_view name, std::vector<ValueId> inputs);

// A node that applies `stages` to `x`, element by element.
Node MakeChain(const Graph& graph, ValueId x, std::vector<kernels::TailStage> stages);

// `node` takes over the outputs and the place of the pattern's last node `id`, the `others` of the
// pattern go: those that only it reads, which the caller made sure of. Nothing happens, and false
// is returned, where `node` reads what one of the others makes (y + y, y a normalized row, as a
// shift of y) and where RewriteContext::AcceptsComposite says no.
bool ReplacePattern(Graph& graph, NodeId id, const std::vector<NodeId>& others, Node node,
                    std::string_view what, RewriteContext& context);

// Puts `node` in the place of `id` if `accepts` its description; otherwise nothing changes.
template <class Accepts>
bool ReplaceIf(Graph& graph, NodeId id, Node node, Accepts accepts) {
  if (!accepts(graph.Describe(node))) return false;
  graph.Replace(id, std::move(node));
  return true;
}

}  // namespace fuselite::fusion
