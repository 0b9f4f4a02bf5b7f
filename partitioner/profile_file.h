// What profile_file holds: the time of each step, summed over the runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/profile.h"
#include "runtime/status.h"

namespace fuselite::partitioner {

// Adds `more` to `times`; other steps than those that `times` has (the partition was compiled anew)
// replace them.
void AddTimes(std::vector<StepTimes>& times, const std::vector<StepTimes>& more);

// Partitions by their first host node. JSON where the path ends in .json, a table otherwise.
Status WriteProfile(const std::map<int, std::vector<StepTimes>>& partitions,
                    const std::string& path);

}  // namespace fuselite::partitioner
