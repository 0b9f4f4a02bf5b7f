// From the host's structs to our own: one tensor, one node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/operator.h"
#include "runtime/packed_store.h"
#include "runtime/status.h"
#include "runtime/tensor.h"
#include "runtime/tflite_abi.h"

namespace fuselite::partitioner {

// A node that some operator of ours stands for; tensors are the host's indices.
struct ImportedNode {
  int host_node = -1;
  const kernels::OperatorDef* op = nullptr;  // null: nothing is left to be computed
  kernels::Params params;
  int version = 1;
  std::vector<int> inputs;  // -1 for an optional input left out
  std::vector<int> outputs;
  std::vector<Quantization> intermediates{};
};

// A description of the tensor with the shape that the host has for it now. `data` is set for the
// model's constants only, and stays valid as long as the host's interpreter; those that are sparse
// have none before UnpackSparse(). kUnsupported for types, quantizations and ranks that nobody here
// computes.
Result<TensorInfo> ImportTensor(const tflite::TfLiteTensor& tensor);

// The dense bytes of a sparse constant, which ImportTensor() has described.
Result<PackedWeights> UnpackSparse(const tflite::TfLiteTensor& tensor, const TensorInfo& info);

// Works while the host's graph may be looked at: inside the delegate's Prepare. kUnsupported where
// the operator is not ours to take: custom, not implemented, taken by another delegate.
Result<ImportedNode> ImportNode(tflite::TfLiteContext* context, int node_index);

// How messages call the operator of a node: "CONV_2D", "custom operator Foo".
std::string NodeName(const tflite::TfLiteRegistration& registration);
std::string CustomName(std::string_view name);

}  // namespace fuselite::partitioner
