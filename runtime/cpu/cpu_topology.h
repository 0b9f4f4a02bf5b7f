// Where ReadCpuInfo() gets its numbers from; apart so that tests can hand in a made-up /sys.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/cpu/cpu.h"
#include "runtime/support/function_ref.h"

namespace fuselite::internal {

// The CPU time that the process's control groups allow it, in whole cores rounded up; 0: no limit.
// Reads `root`/proc/self/{cgroup,mountinfo} and the groups' files below `root`, of version 1 and 2;
// the smallest limit on the way from the process's group to the top counts.
int CgroupCores(const std::string& root);

// The logical cores that affinity and control groups allow this process now. Reads few files.
int AllowedCoreCount();

// CpuInfo::physical_cores of a process that may run on `cpus`.
int PhysicalCoresFrom(const std::string& root, const std::vector<int>& cpus);

// The CPUs whose bits are set in the first mask of which `read` gets some: it is called with larger
// ones, all zero, while it returns false, as sched_getaffinity() refuses what is too short. Where
// it never gets any, all that the machine has.
std::vector<int> AllowedCpusOf(FunctionRef<bool(std::span<unsigned long> mask)> read);

// CpuInfo of a process that may run on `cpus`, from the /proc and /sys below `root`.
CpuInfo ReadCpuInfoFrom(const std::string& root, const std::vector<int>& cpus);

}  // namespace fuselite::internal
