// What a TRANSPOSE can be moved behind, and whether that leads to others, which it may cancel.
#pragma once

#include <set>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// An elementwise node of one output, without a tail, and so no chain of stages.
bool IsElementwiseAlone(const Node& node);

// A sum, mean, maximum or minimum. The shape rule knows its axes.
bool Reduces(const Node& node);

// PAD or PADV2. The shape rule knows the numbers of elements.
bool Pads(const Node& node);

// CONCATENATION, or what takes parts of a value along one dimension, without a tail.
bool JoinsOrParts(const Node& node);

// Whether a TRANSPOSE, or a reduction, comes on every way from a value, through what a TRANSPOSE
// can be moved behind.
class MeetsTransposes {
 public:
  explicit MeetsTransposes(const Graph& graph) : graph_(graph) {}

  bool From(ValueId value, int depth = 0);

 private:
  bool Through(NodeId id, int depth);

  const Graph& graph_;
  std::set<ValueId> asked_;  // one that does not lead there ends the question
};

}  // namespace fuselite::fusion
