#include "partitioner/report/run_profile.h"

#include <string>
#include <utility>

namespace fuselite::partitioner {

void RunProfile::Add(PartitionKey partition, const std::vector<StepTimes>& steps) {
  const std::lock_guard lock(mutex_);
  AddTimes(times_[partition], steps);
}

void RunProfile::AddEvents(int first_node, const Executable& executable,
                           std::vector<ProfileEvent> events) {
  PartitionEvents added{first_node, {}, std::move(events)};
  for (const Step& step : executable.steps()) {
    added.steps.push_back({step.name, std::string(step.kernel->name()), step.ops});
  }
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(added));
}

ProfiledPartitions RunProfile::Times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

std::vector<PartitionEvents> RunProfile::Events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

}  // namespace fuselite::partitioner
