// What a TRANSPOSE can be moved behind, and whether that leads to others, which it may cancel.
#pragma once

#include <map>

#include "fusion/graph.h"

namespace fuselite::fusion {

// An elementwise node of one output, without a tail, that is no chain of stages.
bool IsElementwiseAlone(const Node& node);

// A sum, mean, maximum or minimum along constant dimensions, without a tail.
bool ReducesAlone(const Graph& graph, const Node& node);

// PAD or PADV2 by constant, non-negative numbers of elements, without a tail.
bool PadsAlone(const Graph& graph, const Node& node);

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
  std::map<ValueId, bool> known_;
};

}  // namespace fuselite::fusion
