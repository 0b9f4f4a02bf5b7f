#include "runtime/execution/execution.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "runtime/cpu/float_state.h"
#include "runtime/execution/repeats.h"
#include "runtime/execution/running_step.h"
#include "runtime/execution/shared_run.h"

namespace fuselite {
namespace {

// What a step so many stages ahead reads is not fetched yet: L2 would have given it up by then. The
// small steps between two layers of a decoder are five.
constexpr size_t kNearStages = 8;

}  // namespace

Execution::Execution(std::shared_ptr<const Executable> executable, SpareMemory* spare)
    : executable_(std::move(executable)),
      spare_(spare),
      inputs_(static_cast<size_t>(executable_->inputs())),
      outputs_(static_cast<size_t>(executable_->outputs())),
      variables_(static_cast<size_t>(executable_->variables())) {
  size_t operands = 0;
  for (const Step& step : executable_->steps())
    operands += step.inputs.size() + step.outputs.size();
  slots_.reserve(operands);
  arena_patches_.reserve(operands);
  step_slots_.reserve(executable_->steps().size());
  for (const Step& step : executable_->steps()) {
    const size_t first = slots_.size();
    for (int id : step.inputs) AddSlot(id);
    step_slots_.push_back({first, slots_.size()});
    for (int id : step.outputs) AddSlot(id);
  }
  for (const Value& value : executable_->values()) {
    auto* bindings = value.placement == Placement::kInput      ? &inputs_
                     : value.placement == Placement::kOutput   ? &outputs_
                     : value.placement == Placement::kVariable ? &variables_
                                                               : nullptr;
    if (bindings == nullptr) continue;
    Binding& binding = (*bindings)[static_cast<size_t>(value.index)];
    binding.bytes = std::max(binding.bytes, value.offset + value.bytes);
  }
  if (executable_->part()) repeats_ = std::make_unique<internal::Repeats>(executable_, spare_);
}

Execution::~Execution() {
  Give(arena_);
  Give(scratch_);
}

void Execution::Give(AlignedBuffer& memory) const {
  AlignedBuffer given = std::move(memory);
  if (spare_ != nullptr) spare_->Give(std::move(given));
}

void Execution::AddSlot(int value_id) {
  const size_t slot = slots_.size();
  slots_.push_back(nullptr);
  if (value_id < 0) return;
  const Value& value = executable_->values()[static_cast<size_t>(value_id)];
  const size_t index = static_cast<size_t>(value.index);
  const Patch patch{slot, value.offset};
  switch (value.placement) {
    case Placement::kInput: inputs_[index].patches.push_back(patch); break;
    case Placement::kOutput: outputs_[index].patches.push_back(patch); break;
    case Placement::kVariable: variables_[index].patches.push_back(patch); break;
    case Placement::kArena: arena_patches_.push_back(patch); break;
    case Placement::kConstant: slots_[slot] = const_cast<void*>(value.data); break;
  }
}

void Execution::Rebind(Binding& binding, void* data) {
  binding.data = static_cast<std::byte*>(data);
  for (const Patch& patch : binding.patches) slots_[patch.slot] = binding.data + patch.offset;
  all_bound_ = false;
}

Status Execution::CheckBound() const {
  const auto check = [this](const std::vector<Binding>& bindings, const char* what) -> Status {
    for (size_t i = 0; i < bindings.size(); ++i) {
      const bool used = repeats_ != nullptr || !bindings[i].patches.empty();
      if (bindings[i].data == nullptr && bindings[i].bytes > 0 && used) {
        return InvalidArgument(what, " ", i, " is not bound to memory");
      }
    }
    return {};
  };
  FUSELITE_RETURN_IF_ERROR(check(inputs_, "input"));
  FUSELITE_RETURN_IF_ERROR(check(outputs_, "output"));
  return check(variables_, "variable");
}

Status Execution::Prepare(int threads) {
  threads = std::max(1, std::min(threads, executable_->useful_threads()));
  if (threads <= prepared_threads_) return {};
  if (repeats_ != nullptr) {
    FUSELITE_RETURN_IF_ERROR(repeats_->Prepare(threads));
    prepared_threads_ = threads;
    return {};
  }
  if (arena_.data() == nullptr) {
    AlignedBuffer arena = Take(executable_->arena_bytes());
    if (arena.data() == nullptr) {
      return OutOfMemory("the arena of intermediate values needs ", executable_->arena_bytes(),
                         " bytes");
    }
    for (const Patch& patch : arena_patches_) slots_[patch.slot] = arena.data() + patch.offset;
    arena_ = std::move(arena);
  }
  const size_t scratch_bytes = executable_->scratch_bytes() * static_cast<size_t>(threads);
  AlignedBuffer scratch = Take(scratch_bytes);
  const size_t cells =
      executable_->stages().size() * SharedWork::kCells * static_cast<size_t>(threads);
  std::unique_ptr<WorkCell[]> fresh(threads > 1 ? new (std::nothrow) WorkCell[cells] : nullptr);
  if (scratch.data() == nullptr || (threads > 1 && fresh == nullptr)) {
    return OutOfMemory("scratch for ", threads, " threads needs ", scratch_bytes, " bytes");
  }
  std::swap(scratch_, scratch);
  Give(scratch);  // of fewer threads, which had it until now
  cells_ = std::move(fresh);
  MakeCalls();
  FindStreams();
  prepared_threads_ = threads;  // last: where memory is refused, all is prepared again
  return {};
}

void Execution::MakeCalls() {
  calls_.clear();
  for (const Stage& stage : executable_->stages()) {
    for (const Stage::Part& part : stage.parts) {
      const auto step = static_cast<size_t>(part.step);
      const StepSlots& slots = step_slots_[step];
      const KernelArgs args{slots_.data() + slots.inputs, slots_.data() + slots.outputs,
                            ScratchOf(0), arena_.data() + executable_->shared_offset(part.step),
                            &run_};
      calls_.push_back(
          {executable_->steps()[step].kernel.get(), args, part.units, part.phase, part.step});
    }
  }
}

void Execution::FindStreams() {
  const std::span<const Stage> stages = executable_->stages();
  streams_.assign(stages.size(), {});
  Stream next;
  for (size_t s = stages.size(); s-- > 0;) {
    const Kernel* kernel =
        executable_->steps()[static_cast<size_t>(stages[s].parts[0].step)].kernel.get();
    const auto* streaming =
        stages[s].is_row() ? nullptr : dynamic_cast<const StreamingKernel*>(kernel);
    if (streaming != nullptr && stages[s].parts[0].phase + 1 == kernel->phases() &&
        !streaming->StreamFrom(0).empty()) {
      next = {s, streaming};
    }
    const bool near = next.kernel != nullptr && next.stage - s <= kNearStages;
    streams_[s] = near ? next : Stream();
  }
}

void Execution::ReleaseMemory() {
  Give(arena_);
  Give(scratch_);
  cells_.reset();
  calls_.clear();
  if (repeats_ != nullptr) repeats_->ReleaseMemory();
  prepared_threads_ = 0;
}

std::byte* Execution::ScratchOf(int thread) const {
  return scratch_.data() + executable_->scratch_bytes() * static_cast<size_t>(thread);
}

Status Execution::Run(const RunOptions& options) {
  if (!all_bound_) {
    FUSELITE_RETURN_IF_ERROR(CheckBound());
    all_bound_ = true;
  }
  const int most = std::max(1, std::min(options.threads, executable_->useful_threads()));
  FUSELITE_RETURN_IF_ERROR(Prepare(most));
  const DefaultFloatState state;  // helpers take it over
  if (most == 1) return RunWith(options, 1);
  const int threads = choice_.Next(most);
  if (!choice_.measures()) return RunWith(options, threads);
  const auto begin = std::chrono::steady_clock::now();
  FUSELITE_RETURN_IF_ERROR(RunWith(options, threads));
  choice_.Report(std::chrono::steady_clock::now() - begin);
  return {};
}

Status Execution::RunWith(const RunOptions& options, int threads) {
  if (repeats_ != nullptr) return RunRepeats(options, threads);
  return threads == 1 ? RunAlone(options) : RunShared(options, threads);
}

Status Execution::RunRepeats(const RunOptions& options, int threads) {
  for (size_t i = 0; i < inputs_.size(); ++i) repeats_->BindInput(i, inputs_[i].data);
  for (size_t i = 0; i < outputs_.size(); ++i) repeats_->BindOutput(i, outputs_[i].data);
  return repeats_->Run(options, threads, BeginRun());
}

// What this does for a step beside its kernel is what the smallest nets wait for: some 5 ns.
Status Execution::RunAlone(const RunOptions& options) {
  const auto step = [this](const Call& call) -> const Step& {
    return executable_->steps()[static_cast<size_t>(call.step)];
  };
  const uint32_t own = BeginRun(), run = options.run > 0 ? options.run : own;
  const Call* call = calls_.data();
  try {
    for (const Call* const end = call + calls_.size(); call != end; ++call) {
      if (internal::WantsStop(options)) return internal::Stopped(options, step(*call));
      const internal::StepTimer timer(options.profile, run, call->step, options.thread);
      Status status = call->kernel->Run(call->args, call->phase, 0, call->units);
      if (!status.ok()) return status.In(step(*call).name);
    }
  } catch (...) {
    return internal::Caught(step(*call));
  }
  return {};
}

Status Execution::RunShared(const RunOptions& options, int threads) {
  SharedRun run(*this, options, threads);
  Status alone;
  ParallelRegion(threads, [&](int thread, int count) {
    if (count > 1) {
      run.Join({.number = thread, .count = count, .thread = thread});
    } else {
      alone = RunAlone(options);  // every core is busy, or no thread was to be had
    }
  });
  return alone.ok() ? run.Take() : alone;
}

}  // namespace fuselite
