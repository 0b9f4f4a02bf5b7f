#include "runtime/execution.h"

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "runtime/fetch_ahead.h"
#include "runtime/first_error.h"
#include "runtime/float_state.h"
#include "runtime/parallel_wait.h"
#include "runtime/repeats.h"

namespace fuselite {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// Ranges of one stage end within a fraction of its time of each other; beyond this the core
// belongs to somebody else for now.
constexpr nanoseconds kStageSpin = microseconds(50);
// A long row of small steps may outlast kStageSpin. Helpers give thread 0 so much time to begin it:
// who sleeps then is a helper, which nobody has to wake. An unrolled LSTM of 535 steps takes 96 us
// (median) instead of 118; rows of a few steps, left to thread 0 as well, would cost ResNet8 3%.
constexpr size_t kLongRow = 16;
constexpr nanoseconds kRowSpin = microseconds(2);

// What a step so many stages ahead reads is not fetched yet: L2 would have given it up by then. The
// small steps between two layers of a decoder are five.
constexpr size_t kNearStages = 8;

int64_t NowNs() {
  return std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// What was just thrown, as an error. For handlers only.
Status Caught(const Step& step) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return OutOfMemory(step.name, ": no memory left in ", step.kernel->name());
  } catch (const std::exception& error) {
    return Internal(step.name, ": ", error.what(), " in ", step.kernel->name());
  } catch (...) {
    return Internal(step.name, ": an exception of unknown type in ", step.kernel->name());
  }
}

// Whether somebody wants the run to end.
bool WantsStop(const RunOptions& options) {
  return (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) ||
         (options.deadline && steady_clock::now() >= *options.deadline);
}

// The error of a run that ends before `step` because somebody wants it to.
Status Stopped(const RunOptions& options, const Step& step) {
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
    return Status(StatusCode::kCancelled, "cancelled before " + step.name);
  }
  return Status(StatusCode::kDeadlineExceeded, "the deadline passed before " + step.name);
}

// Records the time between construction and destruction, where there is a profile.
class StepTimer {
 public:
  StepTimer(Profile* profile, uint32_t run, int step, int thread)
      : profile_(profile), event_{run, step, thread, profile ? NowNs() : 0, 0} {}
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;
  ~StepTimer() {
    if (profile_ == nullptr) return;
    event_.duration_ns = NowNs() - event_.start_ns;
    profile_->Record(event_);
  }

 private:
  Profile* profile_;
  ProfileEvent event_;
};

}  // namespace

// What the threads of one run share.
struct Execution::RunState {
  const RunOptions& options;
  nanoseconds spin;
  internal::Sleepers sleepers;  // until a stage is complete
  internal::FirstError error;   // with one, work is still claimed and counted, but no longer done
};

Execution::Execution(std::shared_ptr<const Executable> executable)
    : executable_(std::move(executable)),
      inputs_(static_cast<size_t>(executable_->inputs())),
      outputs_(static_cast<size_t>(executable_->outputs())),
      variables_(static_cast<size_t>(executable_->variables())) {
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
  if (executable_->part()) repeats_ = std::make_unique<internal::Repeats>(executable_);
}

Execution::~Execution() = default;

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
    AlignedBuffer arena(executable_->arena_bytes());
    if (arena.data() == nullptr) {
      return OutOfMemory("the arena of intermediate values needs ", executable_->arena_bytes(),
                         " bytes");
    }
    for (const Patch& patch : arena_patches_) slots_[patch.slot] = arena.data() + patch.offset;
    arena_ = std::move(arena);
  }
  const size_t scratch_bytes = executable_->scratch_bytes() * static_cast<size_t>(threads);
  AlignedBuffer scratch(scratch_bytes);
  const size_t cells =
      executable_->stages().size() * SharedWork::kCells * static_cast<size_t>(threads);
  std::unique_ptr<WorkCell[]> fresh(threads > 1 ? new (std::nothrow) WorkCell[cells] : nullptr);
  if (scratch.data() == nullptr || (threads > 1 && fresh == nullptr)) {
    return OutOfMemory("scratch for ", threads, " threads needs ", scratch_bytes, " bytes");
  }
  scratch_ = std::move(scratch);
  cells_ = std::move(fresh);
  prepared_threads_ = threads;
  MakeCalls();
  FindStreams();
  return {};
}

void Execution::MakeCalls() {
  calls_.clear();
  for (const Stage& stage : executable_->stages()) {
    for (const Stage::Part& part : stage.parts) {
      const auto step = static_cast<size_t>(part.step);
      const StepSlots& slots = step_slots_[step];
      const KernelArgs args{slots_.data() + slots.inputs, slots_.data() + slots.outputs,
                            ScratchOf(0), arena_.data() + executable_->shared_offset(part.step)};
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
  arena_ = AlignedBuffer();
  scratch_ = AlignedBuffer();
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
  if (most > prepared_threads_) FUSELITE_RETURN_IF_ERROR(Prepare(most));
  const DefaultFloatState state;  // helpers take it over
  if (++run_ == 0) run_ = 1;      // 0 is what fresh cells are tagged with
  if (most == 1) return RunWith(options, 1);
  const int threads = choice_.Next(most);
  if (!choice_.measures()) return RunWith(options, threads);
  const auto begin = steady_clock::now();
  FUSELITE_RETURN_IF_ERROR(RunWith(options, threads));
  choice_.Report(steady_clock::now() - begin);
  return {};
}

Status Execution::RunWith(const RunOptions& options, int threads) {
  if (repeats_ != nullptr) return RunRepeats(options, threads);
  return threads == 1 ? RunAlone(options) : RunShared(options, threads);
}

Status Execution::RunRepeats(const RunOptions& options, int threads) {
  for (size_t i = 0; i < inputs_.size(); ++i) repeats_->BindInput(i, inputs_[i].data);
  for (size_t i = 0; i < outputs_.size(); ++i) repeats_->BindOutput(i, outputs_[i].data);
  return repeats_->Run(options, threads, run_);
}

// What this does for a step beside its kernel is what the smallest nets wait for: some 5 ns.
Status Execution::RunAlone(const RunOptions& options) {
  const auto step = [this](const Call& call) -> const Step& {
    return executable_->steps()[static_cast<size_t>(call.step)];
  };
  const Call* call = calls_.data();
  try {
    for (const Call* const end = call + calls_.size(); call != end; ++call) {
      if (WantsStop(options)) return Stopped(options, step(*call));
      const StepTimer timer(options.profile, RunOf(options), call->step, options.thread);
      Status status = call->kernel->Run(call->args, call->phase, 0, call->units);
      if (!status.ok()) return status.In(step(*call).name);
    }
  } catch (...) {
    return Caught(step(*call));
  }
  return {};
}

Status Execution::RunShared(const RunOptions& options, int threads) {
  RunState state{options, HasCoreForEach(threads) ? kStageSpin : nanoseconds(0), {}, {}};
  ParallelRegion(threads, [&](int thread, int count) {
    if (count > 1) {
      RunThread(state, thread, count);
    } else if (Status status = RunAlone(options); !status.ok()) {
      state.error.Set(std::move(status));  // every core is busy, or no thread was to be had
    }
  });
  return state.error.Take();
}

// Every thread walks through all stages, works on what is left of each, and waits where the next
// one needs what others still work on. A thread that comes late finds the first stages done. After
// the last one there is nothing to wait for: the region ends when all its threads are through.
void Execution::RunThread(RunState& state, int thread, int threads) {
  const std::span<const Stage> stages = executable_->stages();
  const auto work_of = [&](size_t s) {
    return SharedWork(&cells_[s * SharedWork::kCells * static_cast<size_t>(threads)], run_,
                      stages[s].units, stages[s].grain, threads);
  };
  FetchAhead ahead;
  const auto fetches_for = [&](size_t s) {
    const Stream& stream = streams_[s];
    if (stream.kernel == nullptr) return false;
    ahead.AimAt(stream.stage, [&] {
      const SharedWork work = work_of(stream.stage);
      const auto own = stream.kernel->StreamFrom(work.FirstUnit(thread));
      const auto behind = stream.kernel->StreamFrom(work.FirstUnit(thread + 1));
      return own.first(own.size() - behind.size());
    });
    return ahead.Next();
  };
  size_t complete = 0;  // stages below are known to be done
  const auto wait_for_all_below = [&](size_t end) {
    for (; complete < end; ++complete) {
      const SharedWork work = work_of(complete);
      const auto done = [&] { return work.Done(); };
      while (!done()) {
        if (!fetches_for(end)) state.sleepers.WaitUntil(done, state.spin);
      }
    }
  };
  std::span<const Call> calls(calls_);
  for (size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].waits) wait_for_all_below(s);
    SharedWork work = work_of(s);
    if (thread != 0 && stages[s].parts.size() >= kLongRow) {
      internal::SpinUntil(kRowSpin, [&] { return work.Begun(); });
    }
    if (s + 1 < stages.size()) work_of(s + 1).FetchCells(thread);
    SharedWork::Range range;
    int64_t units = 0;
    for (int i = 0; i < threads; ++i) {
      const int64_t before = units;
      for (; work.Claim((thread + i) % threads, range); units += range.end - range.begin) {
        RunStage(state, calls.first(stages[s].parts.size()), stages[s].is_row() ? nullptr : &range,
                 thread);
      }
      if (units == before) continue;
      // Before the look at what others have left, which takes as long as they need to see this.
      work.Finish(thread, units);
      state.sleepers.Wake();
    }
    calls = calls.subspan(stages[s].parts.size());
  }
}

// `range`: the units to run, of the one call; null for all units of each call.
void Execution::RunStage(RunState& state, std::span<const Call> calls,
                         const SharedWork::Range* range, int thread) {
  for (const Call& call : calls) {
    if (state.error.any()) return;
    const auto step = [&]() -> const Step& {
      return executable_->steps()[static_cast<size_t>(call.step)];
    };
    if (WantsStop(state.options)) return state.error.Set(Stopped(state.options, step()));
    const StepTimer timer(state.options.profile, RunOf(state.options), call.step, thread);
    KernelArgs args = call.args;
    args.scratch = ScratchOf(thread);
    try {
      const Status status = call.kernel->Run(args, call.phase, range ? range->begin : 0,
                                             range ? range->end : call.units);
      if (!status.ok()) return state.error.Set(status.In(step().name));
    } catch (...) {
      return state.error.Set(Caught(step()));
    }
  }
}

}  // namespace fuselite
