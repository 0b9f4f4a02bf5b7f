#include "runtime/profile.h"

#include <algorithm>
#include <map>

#include "runtime/executable.h"

namespace fuselite {

Profile::Profile(size_t capacity) : events_(std::max<size_t>(capacity, 1)) {}

std::vector<ProfileEvent> Profile::Events() const {
  const uint64_t end = next_, size = events_.size();
  std::vector<ProfileEvent> events;
  events.reserve(std::min(end, size));
  for (uint64_t i = end > size ? end - size : 0; i < end; ++i) events.push_back(events_[i % size]);
  return events;
}

std::vector<StepTimes> Profile::Summarize(const Executable& executable) const {
  std::vector<StepTimes> times;
  for (const Step& step : executable.steps()) {
    times.push_back({step.name, std::string(step.kernel->name()), step.ops});
  }
  struct Interval {
    int64_t begin, end;
  };
  std::map<std::pair<int32_t, uint32_t>, Interval> walls;  // by step and run
  for (const ProfileEvent& event : Events()) {
    if (event.step < 0 || static_cast<size_t>(event.step) >= times.size()) continue;
    times[static_cast<size_t>(event.step)].busy_ns += event.duration_ns;
    const int64_t end = event.start_ns + event.duration_ns;
    const auto [at, fresh] =
        walls.try_emplace({event.step, event.run}, Interval{event.start_ns, end});
    if (fresh) continue;
    at->second.begin = std::min(at->second.begin, event.start_ns);
    at->second.end = std::max(at->second.end, end);
  }
  for (const auto& [key, wall] : walls) {
    StepTimes& step = times[static_cast<size_t>(key.first)];
    const int64_t ns = wall.end - wall.begin;
    step.min_wall_ns = step.runs ? std::min(step.min_wall_ns, ns) : ns;
    step.max_wall_ns = std::max(step.max_wall_ns, ns);
    step.wall_ns += ns;
    ++step.runs;
  }
  return times;
}

}  // namespace fuselite
