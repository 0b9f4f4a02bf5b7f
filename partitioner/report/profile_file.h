// What profile_file holds: the time of each step, summed over the runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/execution/profile.h"
#include "runtime/support/status.h"

namespace fuselite::partitioner {

// Adds `more` to `times`; other steps than those that `times` has (the partition was compiled anew)
// replace them.
void AddTimes(std::vector<StepTimes>& times, const std::vector<StepTimes>& more);

// Which partition: GraphReport::number of its graph, and its first host node.
struct PartitionKey {
  int graph = 0, first_node = 0;
  friend auto operator<=>(const PartitionKey&, const PartitionKey&) = default;
};

using ProfiledPartitions = std::map<PartitionKey, std::vector<StepTimes>>;

// JSON where the path ends in .json, a table otherwise.
Status WriteProfile(const ProfiledPartitions& partitions, const std::string& path);

}  // namespace fuselite::partitioner
