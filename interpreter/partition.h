// Which nodes of a graph a delegate gets together: the rules by which TensorFlow Lite forms
// partitions.
#pragma once

#include <span>
#include <vector>

namespace fuselite::interpreter {

// One node of the execution plan. Tensor index -1 is an operand left out.
struct PlanNode {
  int node = 0;  // its index in the graph
  std::span<const int> inputs, outputs;
  bool claimed = false;      // by the delegate
  bool side_effect = false;  // must keep its order among nodes with side effects
};

// Nodes that run together: all claimed, or none. `inputs` are the tensors they read and did not
// write, constants included; `outputs` those they write that another subset or the caller reads.
// Both ascending.
struct NodeSubset {
  bool claimed = false;
  std::vector<int> nodes;  // in the plan's order
  std::vector<int> inputs, outputs;
};

// Splits `plan`, in which every tensor is written before it is read, into subsets in an order in
// which the same holds. Each subset starts with the first node that can run then, and takes every
// node of its kind that can run after it, past nodes of the other kind: no other split that starts
// alike has fewer subsets. Without `cluster` nodes keep their order, so that a subset ends at the
// first node of the other kind.
std::vector<NodeSubset> PartitionPlan(std::span<const PlanNode> plan, int tensor_count,
                                      std::span<const int> graph_outputs, bool cluster = true);

}  // namespace fuselite::interpreter
