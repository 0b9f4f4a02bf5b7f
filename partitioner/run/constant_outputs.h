// Outputs of a partition whose values are known when it is prepared.
#pragma once

#include <vector>

#include "partitioner/import/build_graph.h"
#include "runtime/memory/budget.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// A tensor of the host whose value is known when the partition is prepared.
struct ConstantOutput {
  int tensor = -1;
  fusion::Value value;
};

// Takes the outputs that depend on constants alone out of the graph, with their values. Errors are
// those of the nodes' runs, an index out of range, and the refusal of `budget`, to which what is
// computed here is held before any of it is: no other place counts it.
Result<std::vector<ConstantOutput>> TakeConstantOutputs(BuiltGraph& built, const Budget& budget);

// kInternal where the host has given the tensor too little memory.
Status CopyTo(tflite::TfLiteTensor& tensor, const ConstantOutput& constant);

bool IsMemoryOfTheUser(const tflite::TfLiteTensor& tensor);

// Shows a constant output to the host as its own kernels do: what is known when preparing lies in
// memory of the tensor's own, where whoever prepares later finds it. Memory that the user has given
// is filled at each run.
Status Publish(tflite::TfLiteContext* context, const ConstantOutput& constant);

}  // namespace fuselite::partitioner
