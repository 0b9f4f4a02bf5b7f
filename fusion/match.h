// Words in which rewrites say what they look for.
#pragma once

#include <optional>
#include <string_view>

#include "fusion/graph/graph.h"
#include "runtime/is_byte.h"

namespace fuselite::fusion {

bool Is(const Graph& graph, NodeId node, std::string_view op);
// Whether `node` is an `op` without a tail.
bool IsBare(const Graph& graph, NodeId node, std::string_view op);

// The node that makes `value`, which is not absent, if it is an `op` without a tail; else kNone.
NodeId ProducerIs(const Graph& graph, ValueId value, std::string_view op);

// As ProducerIs(), where one input of one node reads what it makes, and nobody observes it; kNone
// where `value` is absent, too.
NodeId OwnProducerIs(const Graph& graph, ValueId value, std::string_view op);

// A float32 constant of one element, in any shape; quantized ones do not count.
std::optional<float> ScalarConstant(const Graph& graph, ValueId value);
// Whether `value` is a ScalarConstant() within one part in a million of `expected`: exporters round
// 1/6 and the like.
bool IsScalar(const Graph& graph, ValueId value, float expected);

// A list of integers as they stand for axes, shapes, paddings; nullopt where the value is known
// only at run time, not of signed integers, or has an element outside of int32. Without elements it
// is known, constant or not, as to shape rules.
std::optional<std::vector<int32_t>> IntConstant(const Graph& graph, ValueId value);

// A float32 constant's elements (copied: files leave them misaligned); nullopt for other values.
std::optional<std::vector<float>> FloatConstant(const Graph& graph, ValueId value);

// Whether what `nodes` make is read only by themselves and by `last`, and observed by nobody: they
// can go when `last` is replaced.
bool OnlyReadWithin(const Graph& graph, const std::vector<NodeId>& nodes, NodeId last);

// Ascending, each once. (clang 14 cannot take what libstdc++'s std::ranges::unique returns.)
void SortUnique(std::vector<int>* ids);

bool IsFloat(const Graph& graph, ValueId value);
// Whether the node multiplies floats by integers: it quantizes them by the range of all that it
// reads.
bool HasDynamicRange(const Graph& graph, const Node& node);

// The fused activation in the node's parameters, found through the operator's field table; kNone
// where it has none.
kernels::Activation FusedActivation(const Node& node);
// Whether the node has neither a tail nor a fused activation.
bool NothingFollows(const Node& node);
// Precondition: the operator has the field.
void SetFusedActivation(Node& node, kernels::Activation activation);

// The way up from the last node of a pattern. It keeps the nodes that it comes through.
class PatternWalk {
 public:
  explicit PatternWalk(const Graph& graph) : graph_(graph) {}

  std::vector<NodeId> nodes;  // without the last one

 protected:
  // The node that makes `value`, which is then one of the pattern's, if it is an `op` without a
  // tail and a fused activation; else kNone.
  NodeId Step(ValueId value, std::string_view op);
  // As Step(), where nobody else reads the value.
  NodeId OwnStep(ValueId value, std::string_view op);
  ValueId In(NodeId id, int i) const { return graph_.node(id).inputs[i]; }

  const Graph& graph_;

 private:
  NodeId Take(NodeId id);
};

}  // namespace fuselite::fusion
