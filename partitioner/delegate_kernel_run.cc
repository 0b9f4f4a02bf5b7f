// The runs of a partition.
#include <algorithm>

#include "partitioner/delegate_kernel.h"
#include "partitioner/import/host_call.h"
#include "partitioner/import/host_memory.h"
#include "partitioner/run/constant_outputs.h"
#include "partitioner/run/loop_rows.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;
using Clock = std::chrono::steady_clock;

constexpr auto kProfileInterval = std::chrono::seconds(1);

}  // namespace

Status DelegateKernel::Eval(TfLiteContext* context) {
  FUSELITE_RETURN_IF_ERROR(Status(read_));
  if (program_->IsAllHostCalls()) return program_->RunHostCalls(context);
  if (first_ == nullptr) return Internal("the partition was not prepared");
  stop_.store(false, std::memory_order_relaxed);
  FUSELITE_RETURN_IF_ERROR(first_->end == program_->size() ? EvalFixed(context)
                                                           : EvalSegments(context));
  if (state_->Profiles() && Clock::now() - last_flush_ > kProfileInterval) FlushProfile();
  return Status();
}

Status DelegateKernel::EvalFixed(TfLiteContext* context) {
  // Hosts move tensors between runs.
  const auto bind = [&](const std::vector<BoundTensor>& all, const auto& bind_one) -> Status {
    int i = 0;
    for (const BoundTensor& bound : all) {
      void* const data = FindMemory(context, bound.tensor, bound.bytes);
      if (data == nullptr) return NoMemory(context, bound.tensor, bound.bytes);
      bind_one(i++, data);
    }
    return Status();
  };
  Execution& e = *first_->execution;
  const BuiltGraph& built = first_->built;
  FUSELITE_RETURN_IF_ERROR(bind(built.inputs, [&](int i, void* data) { e.BindInput(i, data); }));
  FUSELITE_RETURN_IF_ERROR(BindVariables(context, *first_));
  FUSELITE_RETURN_IF_ERROR(bind(built.outputs, [&](int i, void* data) { e.BindOutput(i, data); }));
  for (const ConstantOutput& constant : first_->constants) {
    TfLiteTensor& tensor = context->tensors[constant.tensor];
    if (IsMemoryOfTheUser(tensor)) FUSELITE_RETURN_IF_ERROR(CopyTo(tensor, constant));
  }
  if (turns_ == nullptr) return RunSegment(*first_);
  return turns_->Run(context, program_->partition(), *first_, compile_,
                     [&](Segment& segment) { return RunSegment(segment); });
}

Status DelegateKernel::EvalSegments(TfLiteContext* context) {
  live_ = InputsOf(context, std::move(live_));
  for (auto& [tensor, value] : live_) {
    FUSELITE_ASSIGN_OR_RETURN(value.data, MemoryOf(context, tensor, value.info.bytes()));
  }
  const auto place = [&](int tensor, const TensorInfo& info) -> Result<void*> {
    TfLiteTensor& host = context->tensors[tensor];
    if (info.bytes() == 0 && host.allocation_type == kTfLiteDynamic && host.data.data == nullptr) {
      // LiteRT would give it memory, and then show it to nobody: its Python interface takes memory
      // without elements for a mistake.
      host.allocation_type = kTfLiteArenaRw;
      const Status status = Resize(context, tensor, info.shape);
      host.allocation_type = kTfLiteDynamic;
      FUSELITE_RETURN_IF_ERROR(status);
      return NoBytes();
    }
    if (!std::ranges::equal(Elements(host.dims), info.shape.dims()) || host.data.data == nullptr) {
      FUSELITE_RETURN_IF_ERROR(Resize(context, tensor, info.shape));
    }
    return MemoryOf(context, tensor, info.bytes());
  };
  const auto bind_variables = [&](Segment& segment) { return BindVariables(context, segment); };
  const auto run = [&](Segment& segment) { return RunSegment(segment); };
  const auto call = [&](const ImportedNode& node, LiveValues& values) {
    return RunHostCall(context, node, values);
  };
  Status status = program_->Run(context, live_, compile_, {place, bind_variables, run, call});
  if (status.ok() && program_->made() != reported_) Report(context, program_->path());
  return status;
}

Status DelegateKernel::RunSegment(Segment& segment) {
  for (const std::shared_ptr<LoopRows>& rows : segment.rows) {
    FUSELITE_RETURN_IF_ERROR(
        rows->Bind(*segment.execution, [&](Segment& block) { return RunSegment(block); }));
  }
  RunOptions run;
  run.threads = compile_.threads;
  if (state_->Profiles() && segment.profile == nullptr) {
    segment.profile = Profile::For(*segment.executable);
  }
  run.profile = segment.profile.get();
  run.cancel = &stop_;
  return segment.execution->Run(run);
}

// The host's variables, and those that the delegate holds.
Status DelegateKernel::BindVariables(const TfLiteContext* context, Segment& segment) {
  for (size_t i = 0; i < segment.built.variables.size(); ++i) {
    const BoundTensor& bound = segment.built.variables[i];
    const std::optional<int> own = variables_->VariableOf(bound.tensor);
    void* data = nullptr;
    if (own) {
      data = memory_->data(*own);
    } else {
      FUSELITE_ASSIGN_OR_RETURN(data, MemoryOf(context, bound.tensor, bound.bytes));
    }
    segment.execution->BindVariable(static_cast<int>(i), data);
  }
  return Status();
}

Status DelegateKernel::RunHostCall(TfLiteContext* context, const ImportedNode& node,
                                   LiveValues& live) {
  FUSELITE_RETURN_IF_ERROR(node.host_call->Invoke(context));
  for (int tensor : node.outputs) {
    if (!program_->IsNeeded(tensor)) continue;  // hosts give no memory to what nobody reads
    FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, ImportHostTensor(*context, tensor));
    FUSELITE_ASSIGN_OR_RETURN(void* const data, MemoryOf(context, tensor, info.bytes()));
    live[tensor] = {std::move(info), nullptr, data};
  }
  return Status();
}

}  // namespace fuselite::partitioner
