#include "partitioner/delegate_kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "partitioner/guard.h"
#include "partitioner/host_age.h"
#include "runtime/tflite_arrays.h"
#include "runtime/tflite_builtin_codes.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;
using Clock = std::chrono::steady_clock;

constexpr auto kProfileInterval = std::chrono::seconds(1);

Status Resize(TfLiteContext* context, int tensor, const Shape& shape) {
  IntArrayPtr dims = MakeIntArray(shape.dims());
  if (dims == nullptr) return OutOfMemory("no memory for a shape");
  if (context->ResizeTensor(context, &context->tensors[tensor], dims.release()) != kTfLiteOk) {
    return Internal("the host cannot resize output tensor ", tensor);
  }
  return Status();
}

Status CopyTo(TfLiteTensor& tensor, const ConstantOutput& constant) {
  const size_t bytes = constant.value.info.bytes();
  if (bytes == 0) return Status();
  if (tensor.data.data == nullptr || tensor.bytes < bytes) {
    return Internal("the host gives output tensor ", constant.tensor, " no memory");
  }
  std::memcpy(tensor.data.data, constant.value.info.data, bytes);
  return Status();
}

bool IsMemoryOfTheUser(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteCustom;
}

// As the host's own kernels do it: what is known when preparing lies in memory of the tensor's own,
// where whoever prepares later finds it. Memory that the user has given is filled at each run.
Status Publish(TfLiteContext* context, const ConstantOutput& constant) {
  TfLiteTensor& tensor = context->tensors[constant.tensor];
  if (IsMemoryOfTheUser(tensor)) return Resize(context, constant.tensor, constant.value.info.shape);
  if (tensor.allocation_type != kTfLitePersistentRo) {
    // Dynamic memory is the tensor's own already.
    if (tensor.allocation_type != kTfLiteDynamic) tensor.data.data = nullptr;
    tensor.allocation_type = kTfLitePersistentRo;
  }
  FUSELITE_RETURN_IF_ERROR(Resize(context, constant.tensor, constant.value.info.shape));
  return CopyTo(tensor, constant);
}

// Stands for the bytes of a tensor without elements, whose pointer may be null in the host.
std::byte no_bytes[1];

// Where the host has the tensor now.
Result<void*> MemoryOf(const TfLiteContext* context, const BoundTensor& bound) {
  const TfLiteTensor& tensor = context->tensors[bound.tensor];
  if (tensor.bytes < bound.bytes || (tensor.data.data == nullptr && bound.bytes > 0)) {
    return Internal("the host changed tensor ", bound.tensor,
                    " without preparing its reader: ", tensor.bytes, " bytes instead of ",
                    bound.bytes);
  }
  return bound.bytes == 0 ? no_bytes : tensor.data.data;
}

void* InitKernel(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  std::unique_ptr<DelegateKernel> kernel;
  const TfLiteStatus status = GuardKernel(context, "init", [&]() -> Status {
    if (buffer == nullptr) return Internal("the host gives no partition");
    const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
    kernel = std::make_unique<DelegateKernel>(Delegate::FromC(params.delegate)->state());
    return kernel->Init(context, params);
  });
  // Null makes the kernel's prepare fail.
  return status == kTfLiteOk ? kernel.release() : nullptr;
}

void FreeKernel(TfLiteContext* /*context*/, void* kernel) {
  delete static_cast<DelegateKernel*>(kernel);
}

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  return GuardKernel(context, "prepare", [&]() -> Status {
    auto* kernel = static_cast<DelegateKernel*>(node->user_data);
    return kernel != nullptr ? kernel->Prepare(context) : Internal("the partition was not read");
  });
}

TfLiteStatus InvokeKernel(TfLiteContext* context, TfLiteNode* node) {
  return GuardKernel(context, "invoke", [&]() -> Status {
    auto* kernel = static_cast<DelegateKernel*>(node->user_data);
    return kernel != nullptr ? kernel->Eval(context) : Internal("the partition was not read");
  });
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
        state_->RemoveKernel(&stop_);
        FlushProfile();
        return Status();
      },
      [](const char*) {});
}

Status DelegateKernel::Init(TfLiteContext* context, const TfLiteDelegateParams& params) {
  HostPartition host;
  const auto copy = [](const TfLiteIntArray* from, std::vector<int>& to) {
    const std::span<const int> elements = Elements(from);
    to.assign(elements.begin(), elements.end());
  };
  copy(params.nodes_to_replace, host.nodes);
  copy(params.input_tensors, host.inputs);
  copy(params.output_tensors, host.outputs);
  const GraphFacts facts = state_->FactsOf(context);
  variables_ = facts.variables;
  host_nodes_ = host.nodes;
  judged_ = state_->TakeJudged(context, host);
  if (judged_) {
    partition_ = std::move(judged_->partition);
  } else {
    FUSELITE_RETURN_IF_ERROR(ReadNodes(context, host));
    if (facts.makers != nullptr) facts.makers->Follow(partition_);
  }
  if (variables_ != nullptr && !variables_->handles().empty()) {
    FUSELITE_ASSIGN_OR_RETURN(memory_, state_->MemoryOf(context, *variables_));
  }
  context_ = context;
  state_->AddKernel(context, &stop_);
  const Options& options = state_->options();
  if (options.keep_profile || options.keep_events || !options.profile_file.empty())
    profile_ = std::make_unique<Profile>();
  return Status();
}

Status DelegateKernel::ReadNodes(TfLiteContext* context, const HostPartition& host) {
  const bool whole_structs = HasSubgraphFunctions(context);
  for (int index : host.nodes) {
    const bool of_variable = variables_ != nullptr && variables_->Concerns(index);
    Result<ImportedNode> node = of_variable ? variables_->Import(index)
                                            : ImportNode(context, index, whole_structs);
    if (!node.ok()) return node.status().In("node " + std::to_string(index));
    partition_.nodes.push_back(*std::move(node));
  }
  partition_.inputs = host.inputs;
  partition_.outputs = host.outputs;
  return Status();
}

std::vector<InputKey> DelegateKernel::CurrentKey(const TfLiteContext* context) const {
  std::vector<InputKey> key;
  for (int index : partition_.inputs) {
    key.push_back(index < 0 ? InputKey() : KeyOf(context->tensors[index]));
  }
  return key;
}

Status DelegateKernel::Prepare(TfLiteContext* context) {
  const int threads = state_->ThreadsFor(context);
  std::vector<InputKey> key = CurrentKey(context);
  if (execution_ == nullptr || key != key_ || threads != compiled_threads_) {
    FUSELITE_RETURN_IF_ERROR(Compile(context, key, threads));
    key_ = std::move(key);
    compiled_threads_ = threads;
  }
  for (const BoundTensor& output : built_.outputs) {
    TfLiteTensor& tensor = context->tensors[output.tensor];
    // What was a constant for other shapes is none any more.
    if (tensor.allocation_type == kTfLitePersistentRo) tensor.allocation_type = kTfLiteDynamic;
    FUSELITE_RETURN_IF_ERROR(Resize(context, output.tensor, output.shape));
  }
  for (const ConstantOutput& constant : constants_) {
    FUSELITE_RETURN_IF_ERROR(Publish(context, constant));
  }
  return Status();
}

Result<BuiltGraph> DelegateKernel::BuildAnew(const TfLiteContext* context) const {
  TensorTable table(context);
  if (variables_ != nullptr) {
    for (const auto& [tensor, info] : variables_->handles()) table.SetVariable(tensor, info);
  }
  int failed = -1;
  Result<BuiltGraph> built = BuildGraph(partition_, context, table, &failed);
  if (built.ok() || failed < 0) return built;
  const ImportedNode& node = partition_.nodes[failed];
  return built.status().In(internal::Join(node.op->name, " (node ", node.host_node, ")"));
}

Status DelegateKernel::Compile(TfLiteContext* context, const std::vector<InputKey>& key,
                               int threads) {
  const Clock::time_point start = Clock::now();
  FlushProfile();
  const fusion::CompileOptions options = state_->CompileOptionsFor(context);
  // What was learnt when the graph was judged holds for the inputs of that time.
  std::optional<JudgedPartition> judged = std::exchange(judged_, std::nullopt);
  if (judged && (!judged->built || judged->key != key ||
                 judged->planner->context().threads != threads)) {
    judged.reset();
  }
  BuiltGraph built;
  if (judged) {
    built = *std::move(judged->built);
  } else {
    FUSELITE_ASSIGN_OR_RETURN(built, BuildAnew(context));
  }
  FUSELITE_ASSIGN_OR_RETURN(std::vector<ConstantOutput> constants, TakeConstantOutputs(built));
  PartitionReport report;
  FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> executable,
                            fusion::Compile(std::move(built.graph), options, &report.report,
                                            judged ? judged->planner.get() : nullptr));
  // The old one, and the weights it holds, live until here.
  execution_ = std::make_unique<Execution>(executable);
  built_ = std::move(built);
  constants_ = std::move(constants);
  FUSELITE_RETURN_IF_ERROR(execution_->Prepare(threads));
  report.nodes = host_nodes_;
  report.compiled = true;
  report.threads = threads;
  report.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  state_->SetCompiled(context, std::move(report), std::move(executable));
  return Status();
}

Status DelegateKernel::Eval(TfLiteContext* context) {
  if (execution_ == nullptr) return Internal("the partition was not prepared");
  // Hosts move tensors between runs.
  const auto bind = [&](const std::vector<BoundTensor>& all, const auto& bind_one) -> Status {
    for (size_t i = 0; i < all.size(); ++i) {
      FUSELITE_ASSIGN_OR_RETURN(void* const data, MemoryOf(context, all[i]));
      bind_one(static_cast<int>(i), data);
    }
    return Status();
  };
  Execution& e = *execution_;
  FUSELITE_RETURN_IF_ERROR(bind(built_.inputs, [&](int i, void* data) { e.BindInput(i, data); }));
  FUSELITE_RETURN_IF_ERROR(BindVariables(context));
  FUSELITE_RETURN_IF_ERROR(bind(built_.outputs, [&](int i, void* data) { e.BindOutput(i, data); }));
  for (const ConstantOutput& constant : constants_) {
    TfLiteTensor& tensor = context->tensors[constant.tensor];
    if (IsMemoryOfTheUser(tensor)) FUSELITE_RETURN_IF_ERROR(CopyTo(tensor, constant));
  }
  RunOptions run;
  run.threads = compiled_threads_;
  run.profile = profile_.get();
  stop_.store(false, std::memory_order_relaxed);
  run.cancel = &stop_;
  FUSELITE_RETURN_IF_ERROR(execution_->Run(run));
  if (profile_ != nullptr && Clock::now() - last_flush_ > kProfileInterval) FlushProfile();
  return Status();
}

// The host's variables, and those that the delegate holds.
Status DelegateKernel::BindVariables(const TfLiteContext* context) {
  for (size_t i = 0; i < built_.variables.size(); ++i) {
    const BoundTensor& bound = built_.variables[i];
    const std::optional<int> own =
        variables_ != nullptr ? variables_->VariableOf(bound.tensor) : std::nullopt;
    void* data = nullptr;
    if (own) {
      data = memory_->data(*own);
    } else {
      FUSELITE_ASSIGN_OR_RETURN(data, MemoryOf(context, bound));
    }
    execution_->BindVariable(static_cast<int>(i), data);
  }
  return Status();
}

void DelegateKernel::FlushProfile() {
  last_flush_ = Clock::now();
  if (profile_ == nullptr || execution_ == nullptr) return;
  const Executable& executable = execution_->executable();
  state_->AddProfile(context_, host_nodes_.front(), profile_->Summarize(executable));
  if (state_->options().keep_events) {
    state_->AddEvents(host_nodes_.front(), executable, profile_->Events());
  }
  profile_->Clear();
}

}  // namespace fuselite::partitioner
