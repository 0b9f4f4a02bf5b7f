// STABLEHLO_COMPOSITE: a node that is one step where its name is known, and otherwise the nodes of
// its decomposition, another subgraph.
#pragma once

#include <memory>
#include <span>

#include "partitioner/import/build_graph.h"
#include "partitioner/import/import.h"
#include "partitioner/import/tensor_table.h"
#include "runtime/support/status.h"

namespace fuselite::partitioner {

// A subgraph that takes the place of a node. Immutable.
struct InlinedBody {
  const tflite::TfLiteContext* graph = nullptr;  // whose tensors `nodes` name
  Partition nodes;  // inputs and outputs in the order of the node's own
};

// What a node gives its body: so many inputs, and the tensors that take its results.
struct BodyEnds {
  int inputs = 0;
  std::span<const int> outputs;
};

// The body of `host_node`, a subgraph of which the delegate takes all nodes; the reason why not.
// Inside the delegate's Prepare only; `whole_structs` as ImportNode's. What is read is taken from
// `nesting`.
Result<std::shared_ptr<const InlinedBody>> ReadBody(tflite::TfLiteContext* context,
                                                    const BodyEnds& ends, int subgraph,
                                                    bool whole_structs, int host_node,
                                                    Nesting& nesting);

// Stands for what only its body computes.
const kernels::OperatorDef& DecomposedOperator();

// Fills in the operator of a composite that is known by name, and the decomposition, where one of
// the two can be had; else the reason why not. Inside the delegate's Prepare only;
// `whole_structs` and `nesting` as ImportNode's: without the first, the host does not show other
// subgraphs either.
Status ImportComposite(tflite::TfLiteContext* context, const tflite::TfLiteNode& node,
                       bool whole_structs, Nesting& nesting, ImportedNode& imported);

// The body as a graph for the shapes that `table` has for the node's inputs, whose constants are
// constants inside. Records the node's outputs. Precondition: node.body.
Result<BuiltGraph> BuildBody(const ImportedNode& node, TensorTable& table);

}  // namespace fuselite::partitioner
