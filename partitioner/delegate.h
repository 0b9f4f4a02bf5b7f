// The delegate: what a host applies to its graphs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "partitioner/claim/choose_partitions.h"
#include "partitioner/options.h"
#include "partitioner/report/explanation.h"
#include "partitioner/report/profile_file.h"
#include "runtime/execution/executable.h"
#include "runtime/execution/profile.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// What applying the delegate has found out for the kernels to come.
struct JudgedGraph {
  GraphFacts facts;
  std::vector<JudgedPartition> partitions;
};

// What threads did in runs of one partition.
struct PartitionEvents {
  int first_node = 0;            // the host's
  std::vector<StepTimes> steps;  // their names; no times
  std::vector<ProfileEvent> events;
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

  // A kernel of the graph lives from the first call to the second. Its runs end at their next step
  // where *stop is true, which Cancel() sets.
  void AddKernel(const tflite::TfLiteContext* context, std::atomic<bool>* stop);
  void RemoveKernel(std::atomic<bool>* stop);
  // Ends the runs that are under way.
  void Cancel();

  // While one lives the host makes the kernels of its graph, which counts as alive before it has
  // any: other threads may begin graphs with the same delegate.
  class KernelsToCome {
   public:
    KernelsToCome(DelegateState& state, const tflite::TfLiteContext* context);
    ~KernelsToCome();
    KernelsToCome(const KernelsToCome&) = delete;
    KernelsToCome& operator=(const KernelsToCome&) = delete;

   private:
    DelegateState& state_;
    const tflite::TfLiteContext* const context_;
  };

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
  // As AddProfile(), for single events, of the partition that `executable` runs.
  void AddEvents(int first_node, const Executable& executable, std::vector<ProfileEvent> events);
  // In the order in which they were added.
  std::vector<PartitionEvents> Events() const;
  // What was added. Kernels add at the latest when they end.
  ProfiledPartitions Profile() const;

 private:
  using GraphEntry = std::pair<const tflite::TfLiteContext*, GraphReport>;

  // Precondition of these three: the caller holds mutex_.
  GraphEntry* FindGraph(const tflite::TfLiteContext* context);
  PartitionReport* FindPartition(const tflite::TfLiteContext* context,
                                 const std::vector<int>& nodes);
  void ForgetDeadGraphs();
  // Write what stands then, if there is a file to write; the caller must not hold mutex_, for which
  // a run's Cancel() may wait.
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
  ProfiledPartitions profile_;
  std::vector<PartitionEvents> events_;
  std::map<std::atomic<bool>*, const tflite::TfLiteContext*> kernels_;
  std::multiset<const tflite::TfLiteContext*> without_kernels_;  // yet
};

class Delegate {
 public:
  explicit Delegate(Options options);
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  // What hosts take. Lives as long as this object.
  tflite::TfLiteDelegate* c_struct() { return &c_struct_; }
  static Delegate* FromC(tflite::TfLiteDelegate* c_struct) {
    return static_cast<Delegate*>(c_struct->data_);
  }

  // Judges the graph's nodes and takes those that are worth it. Fails only where the host does: an
  // error of the delegate leaves the graph to the host, with the reason in the explanation.
  // Where it has taken nodes of the graph already, nothing changes.
  Status Prepare(tflite::TfLiteContext* context);

  Explanation Explain() const { return state_->Explain(); }
  const std::shared_ptr<DelegateState>& state() const { return state_; }

 private:
  bool HasTaken(tflite::TfLiteContext* context) const;

  tflite::TfLiteDelegate c_struct_{};
  std::shared_ptr<DelegateState> state_;
};

}  // namespace fuselite::partitioner
