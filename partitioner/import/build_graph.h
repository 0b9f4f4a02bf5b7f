// From a partition's nodes to the graph that fusion compiles.
#pragma once

#include <vector>

#include "fusion/graph/graph.h"
#include "partitioner/import/import.h"
#include "partitioner/import/tensor_table.h"
#include "runtime/support/status.h"

namespace fuselite::partitioner {

// What one delegate kernel computes; tensors and nodes are the host's indices.
struct Partition {
  std::vector<SharedNode> nodes;  // in running order
  // So many of the first nodes are others' too: makers of constants that are read here.
  int followed = 0;
  std::vector<int> inputs;   // read, but not made inside: constants and variables too
  std::vector<int> outputs;  // made inside, and read outside
};

// What is bound at each run: the host's tensor, and how many bytes it must have.
struct BoundTensor {
  int tensor = -1;
  TensorInfo info{};
  size_t bytes = 0;
};

// What compiled code depends on, of one tensor that is read from outside.
struct InputKey {
  DataType type = DataType::kNone;
  Shape shape;
  const void* constant = nullptr;
  friend bool operator==(const InputKey&, const InputKey&) = default;
};

// The key of the tensor as the host has it now.
InputKey KeyOf(const tflite::TfLiteTensor& tensor);

struct BuiltGraph {
  fusion::Graph graph;
  // Behind graph.inputs: those that are only read, and the variables.
  std::vector<BoundTensor> inputs, variables;
  // Behind graph.outputs: the partition's, and what its later nodes read.
  std::vector<BoundTensor> outputs;
  int end = 0;  // the node in partition.nodes that the graph ends before
};

// Runs the shape rules over the nodes from `begin` on, starting from what `table` says of what they
// read. The graph ends before the first node whose outputs' shapes depend on values that `table`
// does not have. On an error `*failed_node` is the index in partition.nodes of the node that it is
// about.
Result<BuiltGraph> BuildGraph(const Partition& partition, int begin,
                              const tflite::TfLiteContext* context, TensorTable& table,
                              int* failed_node);

}  // namespace fuselite::partitioner
