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

  // Reads the partition's nodes: only here does the host show them.
  Status Init(tflite::TfLiteContext* context, const tflite::TfLiteDelegateParams& params);
  // Compiles for the shapes that the host has now, unless that is done already, and gives the
  // outputs their shapes. May come at any time, in the middle of an invoke of the graph too.
  Status Prepare(tflite::TfLiteContext* context);
  Status Eval(tflite::TfLiteContext* context);

  // The host's registration for a kernel like this, with a name that lives as long as `state`,
  // which its kernels keep.
  static tflite::TfLiteRegistration Registration(const DelegateState& state);

 private:
  // What compiled code depends on, of one tensor that is read from outside.
  struct InputKey {
    DataType type = DataType::kNone;
    Shape shape;
    const void* constant = nullptr;
    friend bool operator==(const InputKey&, const InputKey&) = default;
  };

  std::vector<InputKey> CurrentKey(const tflite::TfLiteContext* context) const;
  Status Compile(tflite::TfLiteContext* context, int threads);
  Status BindVariables(const tflite::TfLiteContext* context);
  void FlushProfile();

  const std::shared_ptr<DelegateState> state_;
  const tflite::TfLiteContext* context_ = nullptr;  // tells graphs apart; not looked into
  std::vector<int> host_nodes_;                     // what the partition stands for
  Partition partition_;
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
