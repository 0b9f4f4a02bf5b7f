// One partition in the host's graph: a node of the host that runs a Program.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "partitioner/delegate_state.h"
#include "partitioner/run/loop_turns.h"
#include "partitioner/run/program.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

class DelegateKernel {
 public:
  explicit DelegateKernel(std::shared_ptr<DelegateState> state) : state_(std::move(state)) {}
  ~DelegateKernel();

  // Takes over what the delegate has learnt of the partition; reads its nodes, where the host has
  // made another one than it said: only here does it show them. Where that fails, Prepare() says
  // why.
  void Init(tflite::TfLiteContext* context, const tflite::TfLiteDelegateParams& params);
  // Compiles for the shapes that the host has now, as far as these decide, unless that is done
  // already, and gives the outputs their shapes. May come at any time, in the middle of an invoke
  // of the graph too.
  Status Prepare(tflite::TfLiteContext* context, tflite::TfLiteNode* node);
  Status Eval(tflite::TfLiteContext* context);

  // The host's registration for a kernel like this, with a name that lives as long as `state`,
  // which its kernels keep.
  static tflite::TfLiteRegistration Registration(const DelegateState& state);

 private:
  // What Init() does, and why it failed.
  Status Read(tflite::TfLiteContext* context, const tflite::TfLiteDelegateParams& params);
  Status ReadNodes(tflite::TfLiteContext* context, const HostPartition& host, Partition& partition);
  // The partition's inputs that are neither constants nor variables, without their memory: those
  // of `before`, a run's values, as far as the host has not reshaped them.
  LiveValues InputsOf(const tflite::TfLiteContext* context, LiveValues before) const;
  // Lets the first segment be made of what was learnt when the graph was judged, if that holds for
  // the inputs of now.
  void UseJudgement(const tflite::TfLiteContext* context);
  std::vector<InputKey> KeysOfInputs(const tflite::TfLiteContext* context) const;
  // Whether the last Prepare() has made everything for such inputs as there are now.
  bool IsPrepared(const tflite::TfLiteContext* context) const;
  // Prepare() where the host's kernels run all nodes: Program::IsAllHostCalls().
  Status PrepareHostCalls(tflite::TfLiteContext* context, tflite::TfLiteNode* node);
  // What Prepare() does, which also reports what fails.
  Status PrepareProgram(tflite::TfLiteContext* context, tflite::TfLiteNode* node);
  // Whether the node's outputs have shapes now.
  static Result<bool> PrepareHostCall(tflite::TfLiteContext* context, const ImportedNode& node);
  // The outputs of the nodes from `begin` on get their shapes from runs.
  void MakeDynamic(tflite::TfLiteContext* context, int begin) const;
  // Gives the outputs whose shapes are known theirs, and lets the others be given theirs by runs.
  // `path` receives the segments that are known so far, with those that wait for values: the last
  // one, and branches that all give the same shapes.
  Status ShapeOutputs(tflite::TfLiteContext* context, LiveValues live,
                      std::vector<const Segment*>& path);
  Status ShapeOutputs(tflite::TfLiteContext* context, const Segment& segment);
  // Lets the host plan memory for what lies between fuselite's nodes and those that its kernel
  // runs.
  Status SetTemporaries(tflite::TfLiteNode* node) const;
  Status RunHostCall(tflite::TfLiteContext* context, const ImportedNode& node, LiveValues& live);
  // Runs the only segment there is.
  Status EvalFixed(tflite::TfLiteContext* context);
  // Runs one segment after the other.
  Status EvalSegments(tflite::TfLiteContext* context);
  Status BindVariables(const tflite::TfLiteContext* context, Segment& segment);
  Status RunSegment(Segment& segment);
  void Report(tflite::TfLiteContext* context, std::span<const Segment* const> path);
  void FlushProfile();
  void FlushProfile(int first_node, Segment& segment, std::vector<StepTimes>& steps);

  const std::shared_ptr<DelegateState> state_;
  const tflite::TfLiteContext* context_ = nullptr;  // tells graphs apart; not looked into
  Status read_;                                     // what became of Init()
  std::vector<int> host_nodes_;                     // what the partition stands for
  std::optional<JudgedPartition> judged_;  // until the first compilation; its partition is empty
  std::shared_ptr<const GraphVariables> variables_;  // of the whole graph
  std::shared_ptr<VariableMemory> memory_;           // null where there are none
  std::shared_ptr<const Loop> loop_;                 // of whose body this is all; may be null
  std::unique_ptr<Program> condition_;               // of the loop
  std::unique_ptr<LoopTurns> turns_;                 // for first_; null where there is no loop
  std::unique_ptr<Program> program_;
  Segment* first_ = nullptr;        // for the inputs' shapes; null before Prepare
  fusion::CompileOptions compile_;  // which take a look at all of the host's tensors to make
  LiveValues live_;                 // of the last run of segments
  std::vector<InputKey> prepared_;  // the inputs that first_ is for
  static constexpr int kNothing = -1;
  int reported_ = kNothing;  // of program_->made()
  std::chrono::steady_clock::time_point last_flush_;
  std::atomic<bool> stop_{false};
};

}  // namespace fuselite::partitioner
