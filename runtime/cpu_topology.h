// Where ReadCpuInfo() gets its numbers from; apart so that tests can hand in a made-up /sys.
#pragma once

#include <string>
#include <vector>

#include "runtime/cpu.h"

namespace fuselite::internal {

// The CPU time that the process's control groups allow it, in whole cores rounded up; 0: no limit.
// Reads `root`/proc/self/{cgroup,mountinfo} and the groups' files below `root`, of version 1 and 2;
// the smallest limit on the way from the process's group to the top counts.
int CgroupCores(const std::string& root);

// The logical cores that affinity and control groups allow this process now. Reads few files.
int AllowedCoreCount();

// CpuInfo::physical_cores of a process that may run on `cpus`.
int PhysicalCoresFrom(const std::string& root, const std::vector<int>& cpus);

// CpuInfo of a process that may run on `cpus`, from the /proc and /sys below `root`.
CpuInfo ReadCpuInfoFrom(const std::string& root, const std::vector<int>& cpus);

}  // namespace fuselite::internal
