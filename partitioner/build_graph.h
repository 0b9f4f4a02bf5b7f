// From a partition's nodes to the graph that fusion compiles.
#pragma once

#include <vector>

#include "fusion/graph.h"
#include "partitioner/import.h"
#include "partitioner/tensor_table.h"
#include "runtime/status.h"

namespace fuselite::partitioner {

// What one delegate kernel computes; tensors and nodes are the host's indices.
struct Partition {
  std::vector<ImportedNode> nodes;  // in running order
  std::vector<int> inputs;          // read, but not made inside: constants and variables too
  std::vector<int> outputs;         // made inside, and read outside
};

struct BuiltGraph {
  fusion::Graph graph;
  // The host's tensors behind graph.inputs: those that are only read, and the variables.
  std::vector<int> inputs, variables;
  std::vector<int> outputs;  // those behind graph.outputs
  std::vector<Shape> output_shapes;
};

// Runs the shape rules over the nodes, starting from what `table` says of the partition's inputs.
// On an error `*failed_node` is the index in partition.nodes of the node that it is about.
Result<BuiltGraph> BuildGraph(const Partition& partition, const tflite::TfLiteContext* context,
                              TensorTable& table, int* failed_node);

}  // namespace fuselite::partitioner
