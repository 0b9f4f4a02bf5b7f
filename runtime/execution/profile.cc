#include "runtime/execution/profile.h"

#include <algorithm>
#include <map>

#include "runtime/execution/executable.h"
#include "runtime/support/is_index.h"

namespace fuselite {

Profile::Profile(size_t capacity) : events_(std::max<size_t>(capacity, 1)) {}

std::unique_ptr<Profile> Profile::For(const Executable& executable) {
  constexpr size_t kLeast = 16384, kRuns = 8;
  const Executable& part = executable.part() ? *executable.part() : executable;
  const size_t of_run = part.steps().size() * static_cast<size_t>(executable.repeats());
  return std::make_unique<Profile>(std::max(kLeast, kRuns * of_run));
}

std::vector<ProfileEvent> Profile::Events() const {
  const uint64_t end = next_, size = events_.size();
  std::vector<ProfileEvent> events;
  events.reserve(std::min(end, size));
  for (uint64_t i = end > size ? end - size : 0; i < end; ++i) events.push_back(events_[i % size]);
  return events;
}

std::vector<StepTimes> Profile::Summarize(const Executable& executable) const {
  // Threads that repeat it are in different steps at the same time: a step's wall time is then what
  // it takes of each of them.
  const bool repeats = executable.part() != nullptr;
  std::vector<StepTimes> times;
  for (const Step& step : (repeats ? *executable.part() : executable).steps()) {
    times.push_back({step.name, std::string(step.kernel->name()), step.ops});
  }
  struct InRun {
    int64_t begin, end, busy = 0;
    int threads = 1;
  };
  std::map<std::pair<int32_t, uint32_t>, InRun> runs;  // by step and run
  const std::vector<ProfileEvent> events = Events();
  for (const ProfileEvent& event : events) {
    if (overflowed() && event.run == events[0].run) continue;
    if (!IsIndex(event.step, times.size())) continue;
    times[static_cast<size_t>(event.step)].busy_ns += event.duration_ns;
    const int64_t end = event.start_ns + event.duration_ns;
    InRun& run =
        runs.try_emplace({event.step, event.run}, InRun{event.start_ns, end}).first->second;
    run.begin = std::min(run.begin, event.start_ns);
    run.end = std::max(run.end, end);
    run.busy += event.duration_ns;
    run.threads = std::max(run.threads, event.thread + 1);
  }
  for (const auto& [key, run] : runs) {
    StepTimes& step = times[static_cast<size_t>(key.first)];
    const int64_t ns = repeats ? run.busy / run.threads : run.end - run.begin;
    step.min_wall_ns = step.runs ? std::min(step.min_wall_ns, ns) : ns;
    step.max_wall_ns = std::max(step.max_wall_ns, ns);
    step.wall_ns += ns;
    ++step.runs;
  }
  return times;
}

}  // namespace fuselite
