// How a partition runs: as a row of segments.
//
// A partition in which no shape depends on values is one segment. A node whose outputs' shapes
// depend on values that a run computes is a segment of its own, made when its operands are there;
// what stands behind it, up to the next such node, is compiled for the shapes that came out. Each
// segment is kept for the shapes that it was made for, so that shapes seen before cost a look-up.
// Weights and code are the process's, and made once for all of them.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fusion/compile.h"
#include "partitioner/claim/variables.h"
#include "partitioner/import/build_graph.h"
#include "partitioner/import/tensor_indices.h"
#include "partitioner/run/constant_outputs.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/profile.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/function_ref.h"
#include "runtime/weights/constant_hashes.h"

namespace fuselite::partitioner {

// A value between segments, or one that comes from outside of the partition.
struct LiveValue {
  TensorInfo info;                      // with `data` where it is known without a run
  std::shared_ptr<const void> storage;  // of that data
  void* data = nullptr;                 // where the run has it
};
using LiveValues = std::map<int, LiveValue>;  // by the host's tensor

// What a segment was made for, of one value that is read there or further on.
struct LiveKey {
  int tensor = -1;
  DataType type = DataType::kNone;
  Shape shape;
  const void* constant = nullptr;  // the host's
  std::string known;               // the bytes of what is known without a run
  friend bool operator==(const LiveKey&, const LiveKey&) = default;
};

class LoopRows;

struct Segment {
  std::vector<LiveKey> key;
  std::string values;  // of the small operands, where it is made for them
  // Where values of large operands decide shapes, too: what infers these, with the large operands'
  // data of some run. The code depends on the shapes alone.
  std::optional<kernels::OpDescription> by_shapes;
  int begin = 0, end = 0;  // in Partition::nodes
  // Its one node's shapes depend on values. Nothing else is set then but built.outputs, where the
  // node has branches that all give what is described there.
  bool waits = false;
  BuiltGraph built;  // its graph is consumed; the lists of tensors stay
  std::vector<ConstantOutput> constants;
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Execution> execution;
  std::unique_ptr<Profile> profile;  // of its runs; made by whoever wants one
  std::shared_ptr<fusion::CompileReport> report = std::make_shared<fusion::CompileReport>();
  double compile_ms = 0;
  // A loop's body has those: what is to be bound before each run.
  std::vector<std::shared_ptr<LoopRows>> rows;

  // Whether the shapes of its results are known before it runs.
  bool has_known_shapes() const { return !waits || !built.outputs.empty(); }
};

class Program {
 public:
  // `loops`: the partition is all of a loop's body, whose runs follow each other.
  Program(Partition partition, std::shared_ptr<const GraphVariables> variables, bool loops = false);

  const Partition& partition() const { return partition_; }
  int size() const { return static_cast<int>(partition_.nodes.size()); }
  // Whether all nodes are run by the host's own kernels, so that every value is the host's.
  bool IsAllHostCalls() const { return all_host_calls_; }
  bool IsInput(int tensor) const { return inputs_.contains(tensor); }
  bool IsOutput(int tensor) const { return outputs_.contains(tensor); }
  // Whether anything needs the tensor, a later node or the host.
  bool IsNeeded(int tensor) const { return IsOutput(tensor) || last_readers_.contains(tensor); }
  // Whether the tensor lies in the host's memory: it is an output, or a node that the host's kernel
  // runs reads or writes it.
  bool IsPlaced(int tensor) const { return IsOutput(tensor) || between_.contains(tensor); }
  // The tensors that only nodes which the host's kernels run need: the host has planned nothing for
  // them.
  const std::set<int>& between() const { return between_; }
  // Adds what is known of the segment's results before a run.
  static void AddResults(const Segment& segment, LiveValues& live);

  // The segment from node `begin` on, for what `live` has of the values before it. With `waits` set
  // where it is a node whose shapes depend on values. Valid until the next call for this `begin`.
  Result<Segment*> SegmentAt(int begin, const tflite::TfLiteContext* context,
                             const LiveValues& live, const fusion::CompileOptions& options);

  // The graph of the first segment, for the inputs that it will be asked for next; `planner` knows
  // its operations.
  void UseGraph(BuiltGraph built, std::shared_ptr<fusion::Planner> planner) {
    ready_ = {std::move(built), std::move(planner)};
  }

  // What a run needs from the partition's kernel.
  struct Host {
    // Gives an output of the partition its shape; its memory.
    FunctionRef<Result<void*>(int tensor, const TensorInfo& info)> place;
    FunctionRef<Status(Segment& segment)> bind_variables;
    FunctionRef<Status(Segment& segment)> run;
    // Runs a node by the host's kernel and adds its results.
    FunctionRef<Status(const ImportedNode& node, LiveValues& live)> call;
  };
  // Runs all segments, beginning with the partition's inputs in `live`.
  Status Run(const tflite::TfLiteContext* context, LiveValues& live,
             const fusion::CompileOptions& options, const Host& host);
  // As Run(), where IsAllHostCalls(): what lies between such nodes is the host's to place. It takes
  // a tenth of the time, which counts where a loop's body is another loop.
  Status RunHostCalls(tflite::TfLiteContext* context) const;
  // Runs one, whose operands are in `live`, and adds its results.
  Status RunSegment(Segment& segment, LiveValues& live, const Host& host);

  // The segments of the last run, as far as it came.
  const std::vector<const Segment*>& path() const { return path_; }
  // Counts the segments that were made.
  int made() const { return made_; }
  // The segments that are kept, by their first node.
  const std::map<int, std::list<std::unique_ptr<Segment>>>& kept() const { return segments_; }

 private:
  struct ReadyGraph {
    BuiltGraph built;
    std::shared_ptr<fusion::Planner> planner;
  };
  // Errors name the node.
  static Status At(const Partition& partition, int node, const Status& status);
  LiveKey KeyOf(int tensor, const tflite::TfLiteContext* context, const LiveValues& live) const;
  bool Holds(std::span<const LiveKey> keys, const tflite::TfLiteContext* context,
             const LiveValues& live) const;
  std::vector<LiveKey> KeyAt(int begin, const tflite::TfLiteContext* context,
                             const LiveValues& live) const;
  Status Compile(Segment& segment, const tflite::TfLiteContext* context, const LiveValues& live,
                 const fusion::CompileOptions& options);
  // The segment of a node that waits, for the values in `live`.
  Result<Segment*> MakeWaiting(const Segment& waiting, const tflite::TfLiteContext* context,
                               const LiveValues& live, const fusion::CompileOptions& options);
  // Fills in built.outputs of the segment of a node that waits, where it has branches and all of
  // them give the same shapes, whichever runs.
  void DescribeBranches(Segment& waiting, const tflite::TfLiteContext* context,
                        const LiveValues& live) const;
  // As MakeWaiting(), where one of several subgraphs runs: the one that the value of its first
  // input names.
  Result<Segment*> MakeBranch(const Segment& waiting, const tflite::TfLiteContext* context,
                              const LiveValues& live, const fusion::CompileOptions& options);
  // The graph of the branch alone, of the node at `begin`.
  Result<BuiltGraph> BuildBranch(int begin, int branch, const tflite::TfLiteContext* context,
                                 const LiveValues& live) const;
  // What was made for the same shapes and values; null where nothing was.
  Segment* FindMade(const Segment& waiting, const std::string& values);
  // As FindMade(), for the shapes of results that values of large operands decide.
  Segment* FindForShapes(const Segment& waiting, const std::string& values, const LiveValues& live);
  Result<BuiltGraph> BuildAlone(const SharedNode& shared, const tflite::TfLiteContext* context,
                                const LiveValues& live, bool all) const;
  // What is known of a node that waits, with the values of its small operands, or of `all`.
  TensorTable TableOf(const ImportedNode& node, const tflite::TfLiteContext* context,
                      const LiveValues& live, bool all) const;
  Status Finish(Segment& segment, fusion::CompileOptions options, fusion::Planner* planner);
  // Has the hashes of the host's constants remembered.
  void AddConstants(const tflite::TfLiteContext* context);
  void FillTable(const LiveValues& live, TensorTable& table) const;
  Segment* Keep(std::unique_ptr<Segment> segment);
  Result<void*> Place(int tensor, const TensorInfo& info, const Host& host);

  const Partition partition_;
  const std::shared_ptr<const GraphVariables> variables_;
  const bool loops_;
  bool all_host_calls_ = true;
  const TensorIndices inputs_, outputs_;  // places in the partition's lists
  TensorIndices last_readers_;            // of each tensor that nodes read: the last of these nodes
  std::set<int> between_;
  SpareMemory spare_;
  ConstantHashes hashes_;
  // Keyed by their first node; those used last come first.
  std::map<int, std::list<std::unique_ptr<Segment>>> segments_;
  std::map<int, AlignedBuffer> memory_;  // of values between segments, by tensor
  std::vector<const Segment*> path_;
  int made_ = 0;
  std::optional<ReadyGraph> ready_;
};

}  // namespace fuselite::partitioner
