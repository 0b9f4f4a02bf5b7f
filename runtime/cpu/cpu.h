// How many cores this process may use, and how large their caches are.
#pragma once

#include <string>

namespace fuselite {

struct CpuInfo {
  std::string model;       // "AMD EPYC ..." or empty where the system does not tell
  int logical_cores = 1;   // that affinity and cgroup quota allow this process
  int physical_cores = 1;  // of those
  long l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // 0 where unknown
};
// Reads the system afresh: affinity can change while a process runs.
CpuInfo ReadCpuInfo();
// CpuInfo::physical_cores alone, for which a model waits that is opened without a number of
// threads.
int PhysicalCores();

}  // namespace fuselite
