// Resource variables that the delegate holds itself: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE,
// and the CALL_ONCE that gives them their first values. Reads and assignments become copies between
// a value of the partition and the variable's own memory, and state splits no graph any more.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "partitioner/import/import.h"
#include "partitioner/import/subgraphs.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

struct Verdict;

// The memory of one interpreter's variables; it lives as long as the kernels that use it.
class VariableMemory {
 public:
  // Fills each variable with its first value. kOutOfMemory where there is none.
  static Result<std::shared_ptr<VariableMemory>> New(std::span<const TensorInfo> first_values);
  void* data(int variable) { return buffers_[variable].data(); }

 private:
  std::vector<AlignedBuffer> buffers_;
};

// The variables of one graph, as its nodes and its initializers use them.
class GraphVariables {
 public:
  GraphVariables() = default;
  // Looks at all subgraphs, inside the delegate's Prepare only. A graph without variables has none.
  GraphVariables(tflite::TfLiteContext* context, std::span<const int> plan);

  // Whether the node is one of those that variables come with.
  bool Concerns(int host_node) const { return nodes_.contains(host_node); }
  // The node as the partition sees it: a copy, or nothing at all (no operator). Fails with the
  // reason where the variables stay the host's.
  Result<ImportedNode> Import(int host_node) const;
  // Which variable the tensor is a handle of; nullopt where it is none.
  std::optional<int> VariableOf(int tensor) const;
  // Type and shape of each handle's variable, by the handle's tensor.
  const std::map<int, TensorInfo>& handles() const { return handles_; }
  // The variables' first values: constants of the host.
  const std::vector<TensorInfo>& first_values() const { return first_values_; }

  // Withdraws the claims on all of these nodes where one of them is not claimed: a variable has one
  // holder. Returns how many.
  int WithdrawUnlessWhole(std::vector<Verdict>& verdicts) const;

 private:
  struct Access {
    int builtin_code = 0;
    int handle = -1, value = -1;  // tensors
    int variable = -1;
  };
  using Name = std::pair<std::string, std::string>;

  Status ReadNodes(tflite::TfLiteContext* context, std::span<const int> plan);
  Status ReadSubgraphs(tflite::TfLiteContext* context);
  // Whether subgraph `index` uses none of the variables.
  Status CheckApart(tflite::TfLiteContext* context, const HostSubgraph& subgraph, int index) const;
  Status ReadInitializer(tflite::TfLiteContext* graph, std::span<const int> plan);
  Status CheckUse(tflite::TfLiteContext* context) const;
  int IdOf(const Name& name);

  std::map<int, Access> nodes_;   // by the host's node
  std::map<int, int> of_handle_;  // variable by the handle's tensor
  std::map<Name, int> ids_;
  std::set<int> initializers_;  // subgraphs
  std::vector<TensorInfo> first_values_;
  std::map<int, TensorInfo> handles_;
  Status status_;  // why they are the host's
};

}  // namespace fuselite::partitioner
