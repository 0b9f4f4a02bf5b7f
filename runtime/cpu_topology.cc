#include "runtime/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

namespace fuselite {
namespace internal {
namespace {

// The first line of a file without its line end; nullopt where it cannot be read.
std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<long> ToLong(std::string_view text) {
  long value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<long> ReadLong(const std::string& path) {
  const auto line = FirstLine(path);
  return line ? ToLong(*line) : std::nullopt;
}

// Rounded up; 0 where there is no quota.
int CoresOf(long quota, long period) {
  if (period <= 0) return 0;
  return static_cast<int>(std::clamp(quota / period + (quota % period > 0), 0L, 1L << 20));
}

// The smaller of two limits, each 0 where there is none.
int Tighter(int limit, int other) {
  return limit == 0 ? other : other == 0 ? limit : std::min(limit, other);
}

int Within(int limit, int cores) { return Tighter(limit, std::max(1, cores)); }

// The limit that one group sets, in either version's files; 0: none.
int LimitOfGroup(const std::string& folder) {
  if (const auto line = FirstLine(folder + "/cpu.max")) {
    const size_t space = line->find(' ');
    if (space == std::string::npos) return 0;
    // "max 100000" has no number in front: no limit.
    return CoresOf(ToLong(*line).value_or(0),
                   ToLong(std::string_view(*line).substr(space + 1)).value_or(0));
  }
  return CoresOf(ReadLong(folder + "/cpu.cfs_quota_us").value_or(0),
                 ReadLong(folder + "/cpu.cfs_period_us").value_or(0));
}

struct Mount {
  std::string root;   // the group that the mount point shows
  std::string point;  // where it shows it
};

bool HasItem(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// The mount of the cpu controller's hierarchy: a version 1 mount with the option "cpu", or the
// version 2 mount.
std::optional<Mount> FindMount(const std::string& root, bool version2) {
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skip, type, source, options;
    Mount mount;
    left >> skip >> skip >> skip >> mount.root >> mount.point;
    right >> type >> source >> options;
    if (version2 ? type == "cgroup2" : type == "cgroup" && HasItem(options, "cpu")) return mount;
  }
  return std::nullopt;
}

// The smallest limit of the group `path` and those above it, as `mount` shows them.
int LimitOnTheWay(const std::string& root, const Mount& mount, std::string path) {
  // In a container the mount often shows the process's own group as its top.
  if (mount.root != "/") {
    path = path.starts_with(mount.root) ? path.substr(mount.root.size()) : std::string();
  }
  int limit = 0;
  while (true) {
    limit = Tighter(limit, LimitOfGroup(root + mount.point + path));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

long CacheBytes(const std::string& text) {
  const long value = ToLong(text).value_or(0);
  if (text.ends_with('K')) return value << 10;
  if (text.ends_with('M')) return value << 20;
  return value;
}

void ReadCaches(const std::string& cpu_folder, CpuInfo& info) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = cpu_folder + "/cache/index" + std::to_string(i);
    if (FirstLine(folder + "/type") == "Instruction") continue;
    const long bytes = CacheBytes(FirstLine(folder + "/size").value_or(""));
    switch (ReadLong(folder + "/level").value_or(0)) {
      case 1: info.l1d_bytes = bytes; break;
      case 2: info.l2_bytes = bytes; break;
      case 3: info.l3_bytes = bytes; break;
      default: break;
    }
  }
}

std::string ReadModelName(const std::string& root) {
  std::ifstream cpuinfo(root + "/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    size_t begin = line.find(':');
    if (begin == std::string::npos) break;
    begin = line.find_first_not_of(" \t", begin + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

// Two logical CPUs are one core where package and core number are equal.
int CountCores(const std::string& root, const std::vector<int>& cpus) {
  std::set<std::pair<long, long>> cores;
  for (int cpu : cpus) {
    const std::string folder =
        root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const auto core = ReadLong(folder + "core_id");
    // Without topology each CPU counts as a core: negative, so as not to meet a real number.
    cores.insert(core ? std::pair(ReadLong(folder + "physical_package_id").value_or(0), *core)
                      : std::pair(-1L, -1L - cpu));
  }
  return static_cast<int>(cores.size());
}

std::vector<int> AllowedCpus() {
  return AllowedCpusOf([](std::span<unsigned long> mask) {
    return sched_getaffinity(0, mask.size_bytes(), reinterpret_cast<cpu_set_t*>(mask.data())) == 0;
  });
}

}  // namespace

// The mask grows until the kernel accepts its size: machines with more than 1024 CPUs refuse the
// fixed-size one.
std::vector<int> AllowedCpusOf(FunctionRef<bool(std::span<unsigned long> mask)> read) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<int> cpus;
  for (size_t capacity = 1024; capacity <= 1 << 16 && cpus.empty(); capacity *= 2) {
    std::vector<unsigned long> mask(capacity / kBits);
    if (!read(mask)) continue;
    for (size_t cpu = 0; cpu < capacity; ++cpu) {
      if (mask[cpu / kBits] >> cpu % kBits & 1) cpus.push_back(static_cast<int>(cpu));
    }
  }
  if (!cpus.empty()) return cpus;
  cpus.resize(std::max(1u, std::thread::hardware_concurrency()));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

int CgroupCores(const std::string& root) {
  int limit = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path" or "0::/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !HasItem(controllers, "cpu")) continue;
    const auto mount = FindMount(root, controllers.empty());
    if (mount) limit = Tighter(limit, LimitOnTheWay(root, *mount, line.substr(second + 1)));
  }
  return limit;
}

CpuInfo ReadCpuInfoFrom(const std::string& root, const std::vector<int>& cpus) {
  CpuInfo info;
  info.model = ReadModelName(root);
  const int limit = CgroupCores(root);
  info.logical_cores = Within(limit, static_cast<int>(cpus.size()));
  info.physical_cores = Within(limit, CountCores(root, cpus));
  const int first = cpus.empty() ? 0 : cpus.front();
  ReadCaches(root + "/sys/devices/system/cpu/cpu" + std::to_string(first), info);
  return info;
}

int AllowedCoreCount() { return Within(CgroupCores(""), static_cast<int>(AllowedCpus().size())); }

}  // namespace internal

CpuInfo ReadCpuInfo() { return internal::ReadCpuInfoFrom("", internal::AllowedCpus()); }

}  // namespace fuselite
