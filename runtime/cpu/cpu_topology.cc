#include "runtime/cpu/cpu_topology.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace fuselite {
namespace internal {
namespace {

// What is in a small file; nullopt where it cannot be read. A stream takes three times as long.
std::optional<std::string> Contents(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string contents;
  std::array<char, 4096> part;
  ssize_t bytes = 0;
  while ((bytes = read(file, part.data(), part.size())) > 0) contents.append(part.data(), bytes);
  close(file);
  if (bytes < 0) return std::nullopt;
  return contents;
}

// Takes the first line of `text`, without its line end.
std::string_view TakeLine(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

// The first line of a file; nullopt where there is none.
std::optional<std::string> FirstLine(const std::string& path) {
  const std::optional<std::string> contents = Contents(path);
  if (!contents || contents->empty()) return std::nullopt;
  std::string_view rest = *contents;
  return std::string(TakeLine(&rest));
}

// Takes the first word of `line`, up to a space.
std::string_view TakeWord(std::string_view* line) {
  const std::string_view word = line->substr(0, line->find(' '));
  line->remove_prefix(std::min(word.size() + 1, line->size()));
  return word;
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
  const long quota = ReadLong(folder + "/cpu.cfs_quota_us").value_or(0);
  if (quota <= 0) return 0;
  return CoresOf(quota, ReadLong(folder + "/cpu.cfs_period_us").value_or(0));
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
  const std::optional<std::string> mounts = Contents(root + "/proc/self/mountinfo");
  std::string_view rest = mounts ? *mounts : std::string_view();
  while (!rest.empty()) {
    std::string_view left = TakeLine(&rest);
    const size_t dash = left.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view right = left.substr(dash + 3);
    left = left.substr(0, dash);
    for (int i = 0; i < 3; ++i) TakeWord(&left);
    const std::string_view group = TakeWord(&left), point = TakeWord(&left);
    const std::string_view type = TakeWord(&right);
    TakeWord(&right);
    const std::string_view options = TakeWord(&right);
    if (version2 ? type == "cgroup2" : type == "cgroup" && HasItem(options, "cpu")) {
      return Mount{std::string(group), std::string(point)};
    }
  }
  return std::nullopt;
}

// The smallest limit of the group `path` and those above it, as `mount` shows them.
int LimitOnTheWay(const std::string& root, const Mount& mount, std::string path) {
  // In a container the mount often shows the process's own group as its top.
  if (mount.root != "/") {
    path = path.starts_with(mount.root) ? path.substr(mount.root.size()) : std::string();
  }
  if (path.ends_with('/')) path.pop_back();
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
  const std::optional<std::string> groups = Contents(root + "/proc/self/cgroup");
  std::string_view rest = groups ? *groups : std::string_view();
  while (!rest.empty()) {  // "4:cpu,cpuacct:/path" or "0::/path"
    const std::string_view line = TakeLine(&rest);
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !HasItem(controllers, "cpu")) continue;
    const auto mount = FindMount(root, controllers.empty());
    if (!mount) continue;
    limit = Tighter(limit, LimitOnTheWay(root, *mount, std::string(line.substr(second + 1))));
  }
  return limit;
}

int PhysicalCoresFrom(const std::string& root, const std::vector<int>& cpus) {
  return cpus.size() == 1 ? 1 : Within(CgroupCores(root), CountCores(root, cpus));
}

CpuInfo ReadCpuInfoFrom(const std::string& root, const std::vector<int>& cpus) {
  CpuInfo info;
  info.model = ReadModelName(root);
  const int limit = CgroupCores(root);
  info.logical_cores = Within(limit, static_cast<int>(cpus.size()));
  info.physical_cores = PhysicalCoresFrom(root, cpus);
  const int first = cpus.empty() ? 0 : cpus.front();
  ReadCaches(root + "/sys/devices/system/cpu/cpu" + std::to_string(first), info);
  return info;
}

int AllowedCoreCount() { return Within(CgroupCores(""), static_cast<int>(AllowedCpus().size())); }

}  // namespace internal

CpuInfo ReadCpuInfo() { return internal::ReadCpuInfoFrom("", internal::AllowedCpus()); }

int PhysicalCores() { return internal::PhysicalCoresFrom("", internal::AllowedCpus()); }

}  // namespace fuselite
