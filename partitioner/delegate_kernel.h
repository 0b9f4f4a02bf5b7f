// One partition in the host's graph: a node of the host that runs an Executable.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/build_graph.h"
#include "partitioner/constants.h"
#include "partitioner/delegate.h"
#include "runtime/execution.h"
#include "runtime/tflite_abi.h"

namespace fuselite::partitioner {

class DelegateKernel {
 public:
  explicit DelegateKernel(std::shared_ptr<DelegateState> state) : state_(std::move(state)) {}
  ~DelegateKernel();

  // Takes over what the delegate has learnt of the partition; reads its nodes, where the host has
  // made another one than it said: only here does it show them.
  Status Init(tflite::TfLiteContext* context, const tflite::TfLiteDelegateParams& params);
  // Compiles for the shapes that the host has now, unless that is done already, and gives the
  // outputs their shapes. May come at any time, in the middle of an invoke of the graph too.
  Status Prepare(tflite::TfLiteContext* context);
  Status Eval(tflite::TfLiteContext* context);

  // The host's registration for a kernel like this, with a name that lives as long as `state`,
  // which its kernels keep.
  static tflite::TfLiteRegistration Registration(const DelegateState& state);

 private:
  std::vector<InputKey> CurrentKey(const tflite::TfLiteContext* context) const;
  Status ReadNodes(tflite::TfLiteContext* context, const HostPartition& host);
  Status Compile(tflite::TfLiteContext* context, const std::vector<InputKey>& key, int threads);
  Result<BuiltGraph> BuildAnew(const tflite::TfLiteContext* context) const;
  Status BindVariables(const tflite::TfLiteContext* context);
  void FlushProfile();

  const std::shared_ptr<DelegateState> state_;
  const tflite::TfLiteContext* context_ = nullptr;  // tells graphs apart; not looked into
  std::vector<int> host_nodes_;                     // what the partition stands for
  Partition partition_;
  std::optional<JudgedPartition> judged_;  // until the first compilation; its partition is empty
  std::shared_ptr<const GraphVariables> variables_;  // of the whole graph
  std::shared_ptr<VariableMemory> memory_;           // null where there are none
  std::vector<InputKey> key_;
  int compiled_threads_ = 0;
  BuiltGraph built_;  // its graph is consumed; the lists of tensors stay
  std::vector<ConstantOutput> constants_;
  std::unique_ptr<Execution> execution_;
  std::unique_ptr<Profile> profile_;
  std::chrono::steady_clock::time_point last_flush_;
  std::atomic<bool> stop_{false};
};

}  // namespace fuselite::partitioner
