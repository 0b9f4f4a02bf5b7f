#include "runtime/execution/shared_run.h"

#include <utility>

#include "runtime/cpu/fetch_ahead.h"
#include "runtime/execution/running_step.h"

namespace fuselite {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Ranges of one stage end within a fraction of its time of each other; beyond this the core
// belongs to somebody else for now.
constexpr nanoseconds kStageSpin = microseconds(50);
// A long row of small steps may outlast kStageSpin. Helpers give member 0 so much time to begin it:
// who sleeps then is a helper, which nobody has to wake. An unrolled LSTM of 535 steps takes 96 us
// (median) instead of 118; rows of a few steps, left to member 0 as well, would cost ResNet8 3%.
constexpr size_t kLongRow = 16;
constexpr nanoseconds kRowSpin = microseconds(2);

}  // namespace

struct Execution::SharedRun::Walk {
  const Member& member;
  size_t complete;  // stages below are known to be done
  FetchAhead ahead;
};

Execution::SharedRun::SharedRun(Execution& execution, const RunOptions& options, int region_threads)
    : execution_(execution),
      options_(options),
      stages_(execution.executable_->stages()),
      spin_(HasCoreForEach(region_threads) ? kStageSpin : nanoseconds(0)),
      tag_(execution.BeginRun()) {}

SharedWork Execution::SharedRun::WorkOf(size_t stage, const Member& member) const {
  const size_t cells = SharedWork::kCells * static_cast<size_t>(member.count);
  return {&execution_.cells_[stage * cells], tag_, stages_[stage].units, stages_[stage].grain,
          member.count};
}

void Execution::SharedRun::Join(const Member& member) {
  Walk walk{.member = member, .complete = 0, .ahead = {}};
  std::span<const Call> calls(execution_.calls_);
  for (size_t s = 0; s < stages_.size(); ++s) {
    const size_t parts = stages_[s].parts.size();
    if (stages_[s].waits) WaitForAllBelow(s, walk);
    RunStage(s, calls.first(parts), walk);
    calls = calls.subspan(parts);
  }
}

bool Execution::SharedRun::FetchFor(size_t stage, Walk& walk) const {
  const Stream& stream = execution_.streams_[stage];
  if (stream.kernel == nullptr) return false;
  walk.ahead.AimAt(stream.stage, [&] {
    const SharedWork work = WorkOf(stream.stage, walk.member);
    const auto own = stream.kernel->StreamFrom(work.FirstUnit(walk.member.number));
    const auto behind = stream.kernel->StreamFrom(work.FirstUnit(walk.member.number + 1));
    return own.first(own.size() - behind.size());
  });
  return walk.ahead.Next();
}

void Execution::SharedRun::WaitForAllBelow(size_t end, Walk& walk) {
  for (; walk.complete < end; ++walk.complete) {
    const SharedWork work = WorkOf(walk.complete, walk.member);
    const auto done = [&] { return work.Done(); };
    while (!done()) {
      if (!FetchFor(end, walk)) sleepers_.WaitUntil(done, spin_);
    }
  }
}

void Execution::SharedRun::RunStage(size_t stage, std::span<const Call> calls, Walk& walk) {
  const Member& member = walk.member;
  SharedWork work = WorkOf(stage, member);
  if (member.number != 0 && calls.size() >= kLongRow) {
    internal::SpinUntil(kRowSpin, [&] { return work.Begun(); });
  }
  if (stage + 1 < stages_.size()) WorkOf(stage + 1, member).FetchCells(member.number);
  SharedWork::Range range;
  int64_t units = 0;
  for (int i = 0; i < member.count; ++i) {
    const int64_t before = units;
    for (; work.Claim((member.number + i) % member.count, range);
         units += range.end - range.begin) {
      RunCalls(calls, stages_[stage].is_row() ? nullptr : &range, member);
    }
    if (units == before) continue;
    // Before the look at what others have left, which takes as long as they need to see this.
    work.Finish(member.number, units);
    sleepers_.Wake();
  }
}

void Execution::SharedRun::RunCalls(std::span<const Call> calls, const SharedWork::Range* range,
                                    const Member& member) {
  for (const Call& call : calls) {
    if (error_.any()) return;
    if (Status status = RunCall(call, range, member); !status.ok()) error_.Set(std::move(status));
  }
}

Status Execution::SharedRun::RunCall(const Call& call, const SharedWork::Range* range,
                                     const Member& member) {
  const auto step = [&]() -> const Step& {
    return execution_.executable_->steps()[static_cast<size_t>(call.step)];
  };
  if (internal::WantsStop(options_)) return internal::Stopped(options_, step());
  const internal::StepTimer timer(options_.profile, options_.run > 0 ? options_.run : tag_,
                                  call.step, member.thread);
  KernelArgs args = call.args;
  args.scratch = execution_.ScratchOf(member.number);
  try {
    const Status status = call.kernel->Run(args, call.phase, range ? range->begin : 0,
                                           range ? range->end : call.units);
    return status.ok() ? Status() : status.In(step().name);
  } catch (...) {
    return internal::Caught(step());
  }
}

}  // namespace fuselite
