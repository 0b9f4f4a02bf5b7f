#include "partitioner/delegate_kernel.h"

#include <algorithm>
#include <utility>

#include "partitioner/claim/list_writes.h"
#include "partitioner/delegate.h"
#include "partitioner/guard.h"
#include "partitioner/import/host_age.h"
#include "partitioner/import/host_call.h"
#include "partitioner/import/host_memory.h"
#include "partitioner/run/constant_outputs.h"
#include "runtime/support/caught.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// What goes wrong here is the answer of the kernel's prepare, since this function has none of its
// own, and hosts go on without looking at what it has reported.
void* InitKernel(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  if (buffer == nullptr) {
    GuardKernel(context, "init", [] { return Internal("the host gives no partition"); });
    return nullptr;
  }
  std::unique_ptr<DelegateKernel> kernel;
  Guard(
      [&] {
        const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
        kernel = std::make_unique<DelegateKernel>(Delegate::FromC(params.delegate)->state());
        kernel->Init(context, params);
        return Status();
      },
      [&](StatusCode, const char*) { kernel = nullptr; });
  return kernel.release();
}

// Of a kernel that InitKernel did not make. Where the host gave no partition, that was reported.
Status NoKernel() {
  return OutOfMemory("the partition was not read: no memory left, or the host gave none");
}

void FreeKernel(TfLiteContext* /*context*/, void* kernel) {
  delete static_cast<DelegateKernel*>(kernel);
}

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  return GuardKernel(context, "prepare", [&]() -> Status {
    auto* kernel = static_cast<DelegateKernel*>(node->user_data);
    return kernel != nullptr ? kernel->Prepare(context, node) : NoKernel();
  });
}

TfLiteStatus InvokeKernel(TfLiteContext* context, TfLiteNode* node) {
  return GuardKernel(context, "invoke", [&]() -> Status {
    auto* kernel = static_cast<DelegateKernel*>(node->user_data);
    return kernel != nullptr ? kernel->Eval(context) : NoKernel();
  });
}

// Whether the host has given the tensor no other shape; its quantization is the model's.
bool IsDescribedBy(const TfLiteTensor& tensor, const TensorInfo& info) {
  return static_cast<int>(info.type) == static_cast<int>(tensor.type) &&
         std::ranges::equal(Elements(tensor.dims), info.shape.dims());
}

}  // namespace

TfLiteRegistration DelegateKernel::Registration(const DelegateState& state) {
  TfLiteRegistration registration{};
  registration.init = InitKernel;
  registration.free = FreeKernel;
  registration.prepare = PrepareKernel;
  registration.invoke = InvokeKernel;
  registration.builtin_code = kTfLiteBuiltinDelegate;
  registration.custom_name = state.options().node_name.c_str();
  registration.version = 1;
  return registration;
}

DelegateKernel::~DelegateKernel() {
  Guard(
      [&] {
        state_->kernels().Remove(&stop_);
        FlushProfile();
        return Status();
      },
      [](StatusCode, const char*) {});
}

void DelegateKernel::Init(TfLiteContext* context, const TfLiteDelegateParams& params) {
  read_ = Guarded("reading the partition", [&] { return Read(context, params); });
}

Status DelegateKernel::Read(TfLiteContext* context, const TfLiteDelegateParams& params) {
  const HostPartition host = HostPartition::Of(params);
  const GraphFacts facts = state_->FactsOf(context);
  variables_ = facts.variables;
  loop_ = facts.loop;
  host_nodes_ = host.nodes;
  Partition partition;
  judged_ = state_->TakeJudged(context, host);
  if (judged_) {
    partition = std::move(judged_->partition);
  } else {
    FUSELITE_RETURN_IF_ERROR(ReadNodes(context, host, partition));
    facts.makers->Follow(partition);
    TakeListWrites(*context, partition);
  }
  // Without variables the delegate remembers nothing of the context.
  if (!variables_->handles().empty()) {
    FUSELITE_ASSIGN_OR_RETURN(memory_, state_->MemoryOf(context, *variables_));
  }
  context_ = context;
  compile_ = state_->CompileOptionsFor(context);
  program_ = std::make_unique<Program>(std::move(partition), variables_, loop_ != nullptr);
  if (loop_ != nullptr) condition_ = LoopTurns::ConditionOf(*loop_);
  state_->kernels().Add(context, &stop_);
  return Status();
}

Status DelegateKernel::ReadNodes(TfLiteContext* context, const HostPartition& host,
                                 Partition& partition) {
  const bool whole_structs = HasSubgraphFunctions(context);
  for (int index : host.nodes) {
    Result<ImportedNode> node = variables_->Concerns(index)
                                    ? variables_->Import(index)
                                    : ImportNode(context, index, whole_structs);
    if (!node.ok()) return node.status().In("node " + std::to_string(index));
    partition.nodes.push_back(std::make_shared<const ImportedNode>(*std::move(node)));
  }
  partition.inputs = host.inputs;
  partition.outputs = host.outputs;
  return Status();
}

LiveValues DelegateKernel::InputsOf(const TfLiteContext* context, LiveValues before) const {
  std::erase_if(before, [&](const auto& value) { return !program_->IsInput(value.first); });
  for (int index : program_->partition().inputs) {
    const TfLiteTensor& tensor = context->tensors[index];
    const auto known = before.find(index);
    if (known != before.end() && IsDescribedBy(tensor, known->second.info)) continue;
    if (known != before.end()) before.erase(known);
    if (tensor.allocation_type == kTfLiteMmapRo || tensor.is_variable) continue;
    Result<TensorInfo> info = ImportHostTensor(*context, index);
    // The node that reads it gives the better message.
    if (info.ok()) before[index].info = *std::move(info);
  }
  return before;
}

Status DelegateKernel::Prepare(TfLiteContext* context, TfLiteNode* node) {
  Status status = PrepareProgram(context, node);
  if (status.ok()) return status;
  state_->SetFailed(context, host_nodes_, status);
  first_ = nullptr;
  reported_ = kNothing;  // what was compiled before may be prepared again
  return status;
}

Status DelegateKernel::PrepareProgram(TfLiteContext* context, TfLiteNode* node) {
  FUSELITE_RETURN_IF_ERROR(Status(read_));
  if (state_->ThreadsFor(context) != compile_.threads) {
    FlushProfile();
    first_ = nullptr;
    program_ = std::make_unique<Program>(program_->partition(), variables_, loop_ != nullptr);
    turns_.reset();
    if (loop_ != nullptr) condition_ = LoopTurns::ConditionOf(*loop_);
    compile_ = state_->CompileOptionsFor(context);
    reported_ = kNothing;
  }
  if (program_->IsAllHostCalls()) return PrepareHostCalls(context, node);
  // LiteRT prepares a loop's subgraphs whenever it begins: what was learnt of it holds.
  if (IsPrepared(context)) return ShapeOutputs(context, *first_);
  first_ = nullptr;
  UseJudgement(context);
  const LiveValues live = InputsOf(context, {});
  FUSELITE_ASSIGN_OR_RETURN(first_, program_->SegmentAt(0, context, live, compile_));
  prepared_ = KeysOfInputs(context);
  if (loop_ != nullptr) turns_ = std::make_unique<LoopTurns>(loop_, condition_.get());
  FUSELITE_RETURN_IF_ERROR(SetTemporaries(node));
  std::vector<const Segment*> path;
  FUSELITE_RETURN_IF_ERROR(ShapeOutputs(context, live, path));
  if (program_->made() != reported_ || first_->waits) Report(context, path);
  return Status();
}

Status DelegateKernel::PrepareHostCalls(TfLiteContext* context, TfLiteNode* node) {
  if (program_->made() != reported_) Report(context, {});
  FUSELITE_RETURN_IF_ERROR(SetTemporaries(node));
  int begin = 0;
  for (bool shaped = true; begin < program_->size(); ++begin) {
    FUSELITE_ASSIGN_OR_RETURN(shaped,
                              PrepareHostCall(context, *program_->partition().nodes[begin]));
    if (!shaped) break;
  }
  MakeDynamic(context, begin);
  return Status();
}

std::vector<InputKey> DelegateKernel::KeysOfInputs(const TfLiteContext* context) const {
  std::vector<InputKey> keys;
  for (int index : program_->partition().inputs) {
    keys.push_back(KeyOf(context->tensors[index]));
  }
  return keys;
}

bool DelegateKernel::IsPrepared(const TfLiteContext* context) const {
  return first_ != nullptr && first_->end == program_->size() &&
         std::ranges::equal(program_->partition().inputs, prepared_, {},
                            [&](int index) { return KeyOf(context->tensors[index]); });
}

void DelegateKernel::UseJudgement(const TfLiteContext* context) {
  std::optional<JudgedPartition> judged = std::exchange(judged_, std::nullopt);
  if (!judged || !judged->built || judged->planner->context().threads != compile_.threads) return;
  if (KeysOfInputs(context) != judged->key) return;
  program_->UseGraph(*std::move(judged->built), std::move(judged->planner));
}

Status DelegateKernel::SetTemporaries(TfLiteNode* node) const {
  const std::set<int>& between = program_->between();
  IntArrayPtr temporaries = MakeIntArray(std::vector<int>(between.begin(), between.end()));
  if (temporaries == nullptr) return OutOfMemory("no memory for a list of tensors");
  const IntArrayPtr before(std::exchange(node->temporaries, temporaries.release()));
  return Status();
}

// As far as shapes are known before a run; the rest is dynamic.
Status DelegateKernel::ShapeOutputs(TfLiteContext* context, LiveValues live,
                                    std::vector<const Segment*>& path) {
  const Partition& partition = program_->partition();
  int begin = 0;
  for (const Segment* segment = first_; begin < program_->size();) {
    if (begin > 0) {
      FUSELITE_ASSIGN_OR_RETURN(segment, program_->SegmentAt(begin, context, live, compile_));
    }
    const ImportedNode& node = *partition.nodes[begin];
    if (node.host_call == nullptr) path.push_back(segment);
    if (segment->has_known_shapes()) {
      FUSELITE_RETURN_IF_ERROR(ShapeOutputs(context, *segment));
      begin = segment->waits ? begin + 1 : segment->end;
      Program::AddResults(*segment, live);
      continue;
    }
    if (node.host_call == nullptr) break;
    FUSELITE_ASSIGN_OR_RETURN(const bool shaped, PrepareHostCall(context, node));
    if (!shaped) break;
    for (int tensor : node.outputs) {
      FUSELITE_ASSIGN_OR_RETURN(live[tensor].info, ImportHostTensor(*context, tensor));
    }
    ++begin;
  }
  MakeDynamic(context, begin);
  return Status();
}

Result<bool> DelegateKernel::PrepareHostCall(TfLiteContext* context, const ImportedNode& node) {
  Status status = node.host_call->Prepare(context);
  if (!status.ok()) return status.In(std::string(node.op->name));
  return std::ranges::none_of(node.outputs, [&](int tensor) {
    return context->tensors[tensor].allocation_type == kTfLiteDynamic;
  });
}

void DelegateKernel::MakeDynamic(TfLiteContext* context, int begin) const {
  for (int i = begin; i < program_->size(); ++i) {
    for (int index : program_->partition().nodes[i]->outputs) {
      TfLiteTensor& tensor = context->tensors[index];
      if (!program_->IsPlaced(index) || IsMemoryOfTheUser(tensor)) continue;
      if (tensor.allocation_type == kTfLiteDynamic) continue;
      tensor.allocation_type = kTfLiteDynamic;
      tensor.data.data = nullptr;
    }
  }
}

Status DelegateKernel::ShapeOutputs(TfLiteContext* context, const Segment& segment) {
  for (const BoundTensor& output : segment.built.outputs) {
    if (!program_->IsPlaced(output.tensor)) continue;
    TfLiteTensor& tensor = context->tensors[output.tensor];
    // What was a constant for other shapes is none any more.
    if (tensor.allocation_type == kTfLitePersistentRo) tensor.allocation_type = kTfLiteDynamic;
    FUSELITE_RETURN_IF_ERROR(Resize(context, output.tensor, output.info.shape));
  }
  for (const ConstantOutput& constant : segment.constants) {
    if (!program_->IsPlaced(constant.tensor)) continue;
    FUSELITE_RETURN_IF_ERROR(Publish(context, constant));
  }
  return Status();
}

}  // namespace fuselite::partitioner
