// STABLEHLO_COMPOSITE: a node that is one step where its name is known, and otherwise the nodes of
// its decomposition, another subgraph.
#pragma once

#include "partitioner/build_graph.h"
#include "partitioner/import.h"
#include "partitioner/tensor_table.h"
#include "runtime/status.h"

namespace fuselite::partitioner {

// A subgraph that takes the place of a node. Immutable.
struct InlinedBody {
  const tflite::TfLiteContext* graph = nullptr;  // whose tensors `nodes` name
  Partition nodes;  // inputs and outputs in the order of the node's own
  int size = 0;     // nodes, those of bodies inside included
};

// Fills in the operator of a composite that is known by name, and the decomposition, where one of
// the two can be had; else the reason why not. Inside the delegate's Prepare only;
// `whole_structs` as ImportNode's: without, the host does not show other subgraphs either.
Status ImportComposite(tflite::TfLiteContext* context, const tflite::TfLiteNode& node,
                       bool whole_structs, ImportedNode& imported);

// The body as a graph for the shapes that `table` has for the node's inputs, whose constants are
// constants inside. Records the node's outputs. Precondition: node.body.
Result<BuiltGraph> BuildBody(const ImportedNode& node, TensorTable& table);

}  // namespace fuselite::partitioner
