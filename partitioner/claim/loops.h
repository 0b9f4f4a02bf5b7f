// Which graphs of a model are the bodies of its loops.
#pragma once

#include <memory>
#include <vector>

#include "partitioner/import/build_graph.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// A WHILE, seen from the graph that is its body.
struct Loop {
  const tflite::TfLiteContext* caller = nullptr;  // the graph with the node
  std::vector<int> arguments;                     // its tensors that the first turn begins with
  const tflite::TfLiteContext* condition = nullptr;
  Partition test;  // the condition's nodes, and the one tensor that they give
};

// The loop that `body` is the body of; null where there is none, where several nodes run this
// graph, or where the delegate does not compute its condition. Inside the delegate's Prepare for
// `body` only.
std::shared_ptr<const Loop> FindLoop(tflite::TfLiteContext* body);

}  // namespace fuselite::partitioner
