// The tensors of one node of a running graph, as the operators of this interpreter reach them.
#pragma once

#include "interpreter/subgraph.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

// Precondition: the node has the input, and it is not left out (CheckCounts).
inline tflite::TfLiteTensor& Input(Subgraph& graph, const tflite::TfLiteNode& node, int i) {
  return graph.tensor(node.inputs->data[i]);
}
// The first output. Precondition: there is one.
inline tflite::TfLiteTensor& Output(Subgraph& graph, const tflite::TfLiteNode& node) {
  return graph.tensor(node.outputs->data[0]);
}

// That a node has just so many inputs and outputs, none of its inputs left out.
Status CheckCounts(const tflite::TfLiteNode& node, int inputs, int outputs);

}  // namespace fuselite::interpreter
