#include "runtime/memory/file_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>

namespace fuselite {
namespace {

// Fewer are not worth a call of the system, which takes as long as packing 10 KiB.
constexpr size_t kLeastBytes = size_t{64} << 10;

// To find a mapping takes 0.05 to 0.3 ms in a process of 200, in which time as much is packed.
constexpr size_t kWorthAsking = size_t{1} << 20;

// Who finds so many that are no files' has made its weights itself, as floats of halves.
constexpr int kMostMisses = 4;

}  // namespace

void FilePages::WereRead(const void* data, size_t bytes) {
  if (bytes < kLeastBytes) return;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  // With the pages at both ends, which hold what lies beside the constant, too.
  const Range pages{begin / page * page, (begin + bytes + page - 1) / page * page};
  const std::lock_guard lock(mutex_);
  read_.push_back(pages);
  read_bytes_ += bytes;
  if (read_bytes_ >= kWorthAsking) GiveBack();
}

void FilePages::GiveBack() {
  for (const Range& pages : read_) {
    if (!latest_.range.Holds(pages)) {
      if (misses_ == kMostMisses) break;
      latest_ = MappingAt(pages.begin);
      misses_ += latest_.of_file ? 0 : 1;
    }
    if (!latest_.of_file || !latest_.range.Holds(pages)) continue;
    // Advice: pages that are locked, which the system keeps, cost no more than their memory.
    (void)madvise(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, MADV_DONTNEED);
  }
  read_.clear();
  read_bytes_ = 0;
}

// Lines of /proc/self/maps are "7f12a000-7f12e000 r--s 00000000 fe:00 1234   /models/model.tflite",
// in the order of their addresses; what was mapped last, as a model, is among the first. No mapping
// where the system tells of none.
FilePages::Mapping FilePages::MappingAt(size_t address) {
  constexpr size_t kSharing = 4;  // of " r--s", behind the addresses
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    const char* const end = line.data() + line.size();
    const char* const dash = std::from_chars(line.data(), end, mapping.range.begin, 16).ptr;
    if (dash == end) break;
    const char* const rights = std::from_chars(dash + 1, end, mapping.range.end, 16).ptr;
    if (mapping.range.end <= address) continue;
    const auto place = static_cast<size_t>(rights - line.data());
    mapping.of_file = line.find('/', place) != std::string::npos &&
                      line[std::min(place + kSharing, line.size() - 1)] == 's';
    return mapping;
  }
  return {};
}

}  // namespace fuselite
