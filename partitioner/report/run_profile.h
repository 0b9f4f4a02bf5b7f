// What the kernels of one delegate measured in their runs.
#pragma once

#include <mutex>
#include <vector>

#include "partitioner/report/profile_file.h"
#include "runtime/execution/executable.h"
#include "runtime/execution/profile.h"

namespace fuselite::partitioner {

// What threads did in runs of one partition.
struct PartitionEvents {
  int first_node = 0;            // the host's
  std::vector<StepTimes> steps;  // their names; no times
  std::vector<ProfileEvent> events;
};

// Kernels add at the latest when they end. Thread-safe.
class RunProfile {
 public:
  void Add(PartitionKey partition, const std::vector<StepTimes>& steps);
  // Single events of the partition that begins at host node `first_node` and runs `executable`.
  void AddEvents(int first_node, const Executable& executable, std::vector<ProfileEvent> events);

  ProfiledPartitions Times() const;
  // In the order in which they were added.
  std::vector<PartitionEvents> Events() const;

 private:
  mutable std::mutex mutex_;
  ProfiledPartitions times_;
  std::vector<PartitionEvents> events_;
};

}  // namespace fuselite::partitioner
