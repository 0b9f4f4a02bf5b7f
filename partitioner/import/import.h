// From the host's structs to fuselite's, one node at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/operator.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"
#include "runtime/tflite/abi.h"
#include "runtime/weights/packed_store.h"

namespace fuselite::partitioner {

struct InlinedBody;
class HostCall;

// A node that some operator of fuselite stands for; tensors are the host's indices.
struct ImportedNode {
  int host_node = -1;
  const kernels::OperatorDef* op = nullptr;  // null: nothing is left to be computed
  kernels::Params params;
  int version = 1;
  std::vector<int> inputs;  // -1 for an optional input left out
  std::vector<int> outputs;
  std::vector<Quantization> intermediates{};
  // A composite's decomposition, for where `op` does not take its operands; null for other nodes.
  std::shared_ptr<const InlinedBody> body{};
  // The subgraphs of a node that runs one of them (branches.h), which its first input chooses.
  std::vector<std::shared_ptr<const InlinedBody>> branches{};
  // For a node that the host's own kernel runs inside the partition (host_call.h).
  std::shared_ptr<HostCall> host_call{};
  std::string_view host_op{};  // fusion::Node's
};
using SharedNode = std::shared_ptr<const ImportedNode>;

// kernels::ImportTensor, before the host has prepared its nodes; kUnsupported for types whose
// elements have no size, kInvalidArgument for tensors that the graph does not have.
Result<TensorInfo> ImportHostTensor(const tflite::TfLiteContext& context, int tensor);

// The dense bytes of a sparse constant, which ImportHostTensor() has described.
Result<PackedWeights> UnpackSparse(const tflite::TfLiteTensor& tensor, const TensorInfo& info);

// What is left of the room that a node has for subgraphs in its place, and those that they run in
// turn: a file may nest them so that they come to billions of nodes, or run one another in a
// circle.
struct Nesting {
  int nodes = 10000;
  int depth = 32;  // negative: too deep
};

// A level of nesting, while its subgraph is read.
class NestingLevel {
 public:
  explicit NestingLevel(Nesting& nesting) : nesting_(nesting) { --nesting_.depth; }
  ~NestingLevel() { ++nesting_.depth; }
  NestingLevel(const NestingLevel&) = delete;
  NestingLevel& operator=(const NestingLevel&) = delete;

  // Whether the subgraph `callee` of so many nodes may be read for a node of `caller`.
  Status Admit(const tflite::TfLiteContext* caller, const tflite::TfLiteContext* callee,
               size_t nodes);

 private:
  Nesting& nesting_;
};

// Works while the host's graph may be looked at: inside the delegate's Prepare. `whole_structs`:
// whether this host's parameter structs have all fields, whatever the node's version
// (HasSubgraphFunctions). kUnsupported where the delegate cannot take the operator: custom, not
// implemented, taken by another delegate. `nesting`: of the node whose subgraph is being read;
// null: of none.
Result<ImportedNode> ImportNode(tflite::TfLiteContext* context, int node_index, bool whole_structs,
                                Nesting* nesting = nullptr);

// How messages call the operator of a node: "CONV_2D", "custom operator Foo".
std::string NodeName(const tflite::TfLiteRegistration& registration);
// The tensor's name as messages have it: "tensor 3 'conv/bias'".
std::string TensorName(const tflite::TfLiteTensor& tensor, int index);
std::string CustomName(std::string_view name);

}  // namespace fuselite::partitioner
