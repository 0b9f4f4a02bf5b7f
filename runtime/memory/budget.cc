#include "runtime/memory/budget.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <istream>

#include "runtime/memory/machine_memory.h"

namespace fuselite {
namespace {

// "8.6 GB": three digits with the SI prefix that keeps them above 1.
std::string Short(double number, const char* unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (number >= 999.5 && prefix + 1 < kPrefixes.size()) {
    number /= 1000;
    ++prefix;
  }
  char text[48];
  const bool bare = prefix == 0 && *unit == '\0';
  std::snprintf(text, sizeof text, "%.3g%s%s%s", number, bare ? "" : " ", kPrefixes[prefix], unit);
  return text;
}

}  // namespace

Status Budget::CheckMemory(double bytes) const {
  if (max_memory <= 0 || bytes <= max_memory) return Status();
  return Status(StatusCode::kOverBudget, "the model asks for " + Short(bytes, "B") +
                                             " of memory for its values, and max_memory allows " +
                                             Short(max_memory, "B"));
}

Status Budget::CheckMemory(std::span<const TensorInfo> values) const {
  double bytes = 0;
  for (const TensorInfo& value : values) bytes += value.estimated_bytes();
  return CheckMemory(bytes);
}

Status Budget::CheckMultiplyAdds(double count) const {
  if (max_multiply_adds <= 0 || count <= max_multiply_adds) return Status();
  return Status(StatusCode::kOverBudget, "a run of the model takes " + Short(count, "") +
                                             " multiply-adds, and max_multiply_adds allows " +
                                             Short(max_multiply_adds, ""));
}

double internal::MemoryWithin(double machine, std::istream& limit) {
  double group = 0;
  // "max" where the group has no limit: reading a number gives 0 then.
  limit >> group;
  return group > 0 && (machine == 0 || group < machine) ? group : machine;
}

double MachineMemory() {
  const auto pages = static_cast<double>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  return internal::MemoryWithin(pages * static_cast<double>(sysconf(_SC_PAGESIZE)), limit);
}

}  // namespace fuselite
