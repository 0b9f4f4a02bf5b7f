// What a delegate knows of the graphs that it was applied to, and shares with its kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "partitioner/claim/choose_partitions.h"
#include "partitioner/options.h"
#include "partitioner/report/explanation.h"
#include "partitioner/report/run_profile.h"
#include "partitioner/run/live_kernels.h"
#include "runtime/execution/executable.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// What applying the delegate has found out for the kernels to come.
struct JudgedGraph {
  GraphFacts facts;
  std::vector<JudgedPartition> partitions;
};

// What the delegate and its kernels share; kernels keep it alive, so that a delegate may go before
// its interpreters. Thread-safe.
class DelegateState {
 public:
  explicit DelegateState(Options options);

  const Options& options() const { return options_; }
  // num_threads where it is set, else what the host recommends, else the physical cores allowed.
  int ThreadsFor(const tflite::TfLiteContext* context) const;
  fusion::CompileOptions CompileOptionsFor(const tflite::TfLiteContext* context) const;

  LiveKernels& kernels() { return kernels_; }

  // A graph begins anew: the host applies the delegate (again). The partitions wait for their
  // kernels.
  void SetGraph(const tflite::TfLiteContext* context, GraphReport report, JudgedGraph judged);
  // As SetGraph() was told; of null pointers where it was told none.
  GraphFacts FactsOf(const tflite::TfLiteContext* context) const;
  // The partition that SetGraph() was given, once; nullopt where the host joins others than it said
  // it would.
  std::optional<JudgedPartition> TakeJudged(const tflite::TfLiteContext* context,
                                            const HostPartition& host);
  // The memory of the graph's variables, which all its kernels share and keep alive.
  Result<std::shared_ptr<VariableMemory>> MemoryOf(const tflite::TfLiteContext* context,
                                                   const GraphVariables& variables);
  // Whether kernels measure their runs.
  bool Profiles() const {
    return options_.keep_profile || options_.keep_events || !options_.profile_file.empty();
  }
  // A partition of the graph was compiled. Keeps `executables` alive until the same partition is
  // compiled again: hosts drop and re-create kernels on a resize, and what was packed and emitted
  // must survive that. What belongs to graphs without kernels is forgotten when another graph
  // begins: their interpreters are gone.
  void SetCompiled(const tflite::TfLiteContext* context, PartitionReport report,
                   std::vector<std::shared_ptr<const Executable>> executables);
  // The partition could not be compiled, for a reason that the explanation then has.
  void SetFailed(const tflite::TfLiteContext* context, const std::vector<int>& nodes,
                 const Status& status);
  Explanation Explain() const;

  // Adds to the times of the graph's partition that begins at host node `first_node`, and writes
  // the profile's file.
  void AddProfile(const tflite::TfLiteContext* context, int first_node,
                  const std::vector<StepTimes>& steps);
  RunProfile& profile() { return profile_; }
  const RunProfile& profile() const { return profile_; }

 private:
  using GraphEntry = std::pair<const tflite::TfLiteContext*, GraphReport>;

  // Precondition of these three: the caller holds mutex_.
  GraphEntry* FindGraph(const tflite::TfLiteContext* context);
  PartitionReport* FindPartition(const tflite::TfLiteContext* context,
                                 const std::vector<int>& nodes);
  void ForgetDeadGraphs();
  // Write what stands then, if there is a file to write. The caller does not hold mutex_.
  void WriteExplainFile() const;
  void WriteProfileFile() const;

  const Options options_;
  // Read when somebody asks: some twenty files of the system, a third of the time that a delegate
  // takes to be made.
  mutable std::once_flag cores_read_;
  mutable int physical_cores_ = 1;
  mutable std::mutex writing_;  // before mutex_: held while a file is written
  mutable std::mutex mutex_;
  // In the order in which the host showed the graphs.
  std::vector<GraphEntry> graphs_;
  int graphs_shown_ = 0;  // those that have died among them
  std::map<std::pair<const tflite::TfLiteContext*, int>,
           std::vector<std::shared_ptr<const Executable>>>
      kept_;
  std::map<const tflite::TfLiteContext*, GraphFacts> facts_;
  // What was judged of the graph that was set last.
  std::pair<const tflite::TfLiteContext*, std::vector<JudgedPartition>> judged_;
  std::map<const tflite::TfLiteContext*, std::weak_ptr<VariableMemory>> memory_;
  LiveKernels kernels_;
  RunProfile profile_;
};

}  // namespace fuselite::partitioner
