// One subgraph at work: tensors, nodes and memory behind the C structs that delegates and custom
// operators see.
//
// The life of a subgraph: Build, ApplyDelegate any number of times, ResizeInput, AllocateTensors,
// Invoke. Not thread-safe, except for what Interpreter says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "interpreter/file/model.h"
#include "interpreter/node.h"
#include "interpreter/op_resolver.h"
#include "interpreter/partition.h"
#include "interpreter/resources.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/budget.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::interpreter {

class Subgraph;

// One node's time in one invoke.
struct NodeEvent {
  int subgraph = 0;
  int node = 0;
  std::string name;
  int64_t start_ns = 0;  // of the monotonic clock
  int64_t duration_ns = 0;
};

// What the subgraphs of one interpreter share.
struct SubgraphHost {
  std::shared_ptr<const Model> model;
  std::vector<std::unique_ptr<Subgraph>> subgraphs;
  int num_threads = -1;
  bool preserve_all_tensors = false;
  bool cluster_partitions = true;
  Budget budget;  // of each subgraph
  std::atomic<bool> cancelled{false};
  Resources resources;
  tflite::TfLiteExternalContext* external_contexts[tflite::kTfLiteMaxExternalContexts] = {};
  // Recorded while not null; at most kMaxEvents of them.
  static constexpr size_t kMaxEvents = 1 << 20;
  std::unique_ptr<std::vector<NodeEvent>> events;
};

// Bytes of the host's tensor of this type and shape: TensorInfo::bytes(), and those of a handle.
size_t HostBytes(const TensorInfo& info);

class Subgraph {
 public:
  // Adds `index`'s tensors and nodes. kUnsupported names the operators that nobody implements,
  // where it `runs`; one that does not may have such.
  static Result<std::unique_ptr<Subgraph>> Build(SubgraphHost& host, int index,
                                                 const OpResolver& resolver, bool runs);
  ~Subgraph();
  Subgraph(const Subgraph&) = delete;
  Subgraph& operator=(const Subgraph&) = delete;

  static Subgraph& From(tflite::TfLiteContext* context) {
    return *static_cast<Subgraph*>(context->impl_);
  }

  const tflite::TfLiteContext& context() const { return context_; }
  const ModelSubgraph& model() const { return model_; }
  SubgraphHost& host() { return host_; }
  int index() const { return index_; }
  std::span<const int> inputs() const { return model_.inputs; }
  std::span<const int> outputs() const { return model_.outputs; }
  tflite::TfLiteTensor& tensor(int index) { return tensors_[index]; }
  const tflite::TfLiteTensor& tensor(int index) const { return tensors_[index]; }
  int tensor_count() const { return static_cast<int>(tensors_.size()); }
  std::span<const int> plan() const { return plan_; }
  const Node& node(int index) const { return *nodes_[index]; }
  bool ready() const { return state_ == State::kReady; }
  bool has_dynamic_tensors() const { return has_dynamic_tensors_; }

  // Gives `tensor`, an input, another shape; the next AllocateTensors adapts everything else.
  Status ResizeInput(int tensor, std::span<const int> dims);
  // Shapes, memory, kernels, and variables as they begin. Nothing is done where nothing changed, as
  // in LiteRT: variables keep their values then.
  Status AllocateTensors();
  // AllocateTensors(), and nothing is left of runs before: variables are reset, and nodes that
  // remember any are prepared again. Its tensors then lie elsewhere.
  Status AllocateAnew();
  // Whether runs change what later ones give: there are variables, or nodes that remember.
  bool KeepsStates() const;
  Status Invoke();
  void ResetVariables();

  // Lets the delegate replace nodes. Where it fails, every delegate is taken off again and the
  // graph is as it was in the file. The delegate must outlive the subgraph.
  Status ApplyDelegate(tflite::TfLiteDelegate* delegate);
  void RemoveDelegates();

  // For operators' prepare and invoke. Dimensions of a dynamic tensor may change at any time, of
  // others only before memory is planned.
  Status ResizeTensor(tflite::TfLiteTensor& tensor, std::span<const int> dims);
  // ResizeTensor() for strings, which take `bytes` with their table and need memory at any time.
  Status ResizeStrings(tflite::TfLiteTensor& tensor, std::span<const int> dims, size_t bytes);
  // To be called in prepare, for an output whose shape only invoke knows.
  void SetDynamic(tflite::TfLiteTensor& tensor);
  // To be called in prepare, for an output whose value is known then: it keeps its memory, which
  // ResizeTensor gives, until the next time.
  void SetPersistent(tflite::TfLiteTensor& tensor);
  // Keeps the reason and gives the code that the C interface knows. For operators of this room.
  tflite::TfLiteStatus Fail(Status status);
  // Memory that is free to use until the function that asks returns; null for no bytes.
  Result<std::byte*> Scratch(size_t bytes);
  // Counts the work of one run of a node, which is being prepared, against the budget.
  Status CountWork(double multiply_adds);
  // Whether `more` bytes beside those that the subgraph and the interpreter's resources hold are
  // within the budget.
  Status CheckMemory(double more) const;
  // kCancelled where somebody wants the run to end. To be asked in whatever may take long.
  Status CheckCancelled() const;

 private:
  enum class State { kUnprepared, kReady };

  // Nodes of the plan that are prepared together and share an arena: up to a node with a dynamic
  // output.
  struct Segment {
    size_t begin = 0, end = 0;  // positions in the plan
    AlignedBuffer arena;
    std::vector<int> dynamic_shapes;  // of what was dynamic when it was prepared
    double multiply_adds = 0;         // of its nodes, as far as they are counted
  };

  Subgraph(SubgraphHost& host, int index);

  // subgraph.cc
  Status AddModelTensors();
  Status AddModelNodes(const OpResolver& resolver, bool runs);
  int AddNode(std::unique_ptr<Node> node);
  void FreeTensor(tflite::TfLiteTensor& tensor);
  void SetTensorsSize(size_t size);
  void ReserveTensors();
  bool HasSideEffect(const Node& node) const;
  Status StatusOf(tflite::TfLiteStatus code, const std::string& where);
  // The status of a node, which is named where it failed only: strings are a twentieth of the time
  // of a model of a few microseconds.
  Status StatusOf(tflite::TfLiteStatus code, const Node& node);
  std::string Where(const Node& node) const;

  // subgraph_memory.cc
  bool HasNodesThatRemember() const;
  void ForgetMemory();
  void ForgetMemoryOf(tflite::TfLiteTensor& tensor);
  void ForgetMemoryFrom(size_t position);
  void ReleaseHeap(tflite::TfLiteTensor& tensor);
  Status PrepareFrom(size_t position);
  Status PropagateShapes();
  Status PrepareNode(Node& node);
  bool HasDynamicOutput(const Node& node) const;
  Status PlanSegment(Segment& segment);
  Status AllocatePersistent();
  // Gives a tensor of the heap `bytes` bytes, of which the first ones are those that it had.
  Status GrowHeap(tflite::TfLiteTensor& tensor, size_t bytes);
  std::vector<int> DynamicShapes(size_t end) const;
  Status EnsurePrepared(size_t position);

  // subgraph_invoke.cc
  Status InvokeNode(Node& node);
  Status CheckInputs(const Node& node);
  // Copies to the tensor what its delegate keeps in memory of its own, if the tensor's is older.
  // `reader`: the node that wants it; null: the caller of the invoke.
  Status FetchFromDelegate(tflite::TfLiteTensor& tensor, const Node* reader);

  // subgraph_delegates.cc
  void ReplaceNodes(const tflite::TfLiteRegistration& registration, std::span<const int> nodes,
                    tflite::TfLiteDelegate* delegate);
  Status RunDelegatePrepare(tflite::TfLiteDelegate* delegate);
  void UndoDelegates();
  Status RedoDelegates();
  std::vector<NodeSubset> Partition(std::span<const int> nodes) const;
  void ClearPreview();

  // subgraph_context.cc: the functions of the context.
  struct ContextFunctions;
  void InitContext();
  void SetDelegateFunctions(bool allowed);

  SubgraphHost& host_;
  const int index_;
  const ModelSubgraph& model_;
  tflite::TfLiteContext context_{};
  std::vector<tflite::TfLiteTensor> tensors_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<int> plan_;
  State state_ = State::kUnprepared;

  std::vector<Segment> segments_;
  std::vector<AlignedBuffer> persistent_;  // of each tensor; most are empty
  AlignedBuffer scratch_;
  double multiply_adds_ = 0;  // of the nodes prepared so far
  bool has_dynamic_tensors_ = false;
  size_t prepared_ = 0;  // positions of the plan that are prepared in this run

  size_t original_nodes_ = 0;  // those behind are delegates' kernels
  std::vector<int> original_plan_;
  std::vector<tflite::TfLiteDelegate*> delegates_;
  bool delegates_undone_ = false;
  bool delegates_are_static_ = false;  // one of them does not take dynamic tensors

  std::string errors_;  // what ReportError was told since the last Status
  Status failure_;      // what Fail was told since then
  // Of which kind a delegate said its error is (runtime/tflite/failure_context.h) since then.
  StatusCode told_ = StatusCode::kInternal;
  tflite::IntArrayPtr plan_array_;
  std::vector<tflite::TfLiteDelegateParams> preview_;
};

}  // namespace fuselite::interpreter
