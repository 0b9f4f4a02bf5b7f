// A graph that is edited freely.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion::testing {

// The graph as lists.
struct Draft {
  explicit Draft(const Graph& graph);

  // An input of the graph; bytes have the type and shape of `like`.
  ValueId Input(const TensorInfo& like);
  ValueId Constant(const std::vector<int32_t>& numbers);
  // What `op` makes of `inputs`, computed right before node `at`.
  ValueId Insert(size_t at, std::string_view op, std::vector<ValueId> read);
  // Has a QUANTIZE of an input of its own, or an ABS where `v` is in floats, make `v` right before
  // node `at`.
  void Write(size_t at, ValueId v);

  // The graph with its shapes brought up to date; nullopt where an operator's rules or the graph's
  // refuse it.
  std::optional<Graph> Build() const;

  std::vector<ValueId> inputs, outputs;
  std::vector<Value> values;
  std::vector<Node> nodes;
};

// Is called with what is changed of a draft, in words, and how.
using Change = std::function<void(Draft&)>;
using Attempt = std::function<void(const std::string& what, const Change&)>;

// Calls `visit` with each changed draft that can be built. Both live as long as the result.
Attempt Building(const Draft& draft,
                 const std::function<void(const std::string& what, const Graph&)>& visit);

// What neighbours.h promises, of the values and of the nodes of `draft`.
void TryChangesOfValues(const Draft& draft, const Attempt& attempt);
void TryChangesOfNodes(const Draft& draft, const Attempt& attempt);

}  // namespace fuselite::fusion::testing
