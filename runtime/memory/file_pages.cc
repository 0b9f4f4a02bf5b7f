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

// Fewer are not worth a call of the system, which takes as long as packing 10 KiB. A fault maps so
// many, too: what lies between two constants is given back with them up to here.
constexpr size_t kLeastBytes = size_t{64} << 10;

// To find a mapping takes 0.05 to 0.3 ms in a process of 200, in which time as much is packed.
constexpr size_t kWorthAsking = size_t{1} << 20;

}  // namespace

FilePages::~FilePages() {
  if (file_) GiveBack();
}

void FilePages::WereRead(const void* data, size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (address_ == nullptr || bytes < page) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  // With the pages at both ends, which hold what lies beside the constant, too.
  const Range pages{begin / page * page, (begin + bytes + page - 1) / page * page};
  const std::lock_guard lock(mutex_);
  if (file_ && !file_->Holds(pages)) return;
  read_.push_back(pages);
  read_bytes_ += bytes;
  if (read_bytes_ >= kWorthAsking) GiveBack();
}

void FilePages::GiveBack() {
  if (!file_) file_ = SharedFileAt(address_);
  std::erase_if(read_, [&](const Range& pages) { return !file_->Holds(pages); });
  std::ranges::sort(read_, {}, &Range::begin);
  for (size_t i = 0; i < read_.size();) {
    Range run = read_[i++];
    for (; i < read_.size() && read_[i].begin < run.end + kLeastBytes; ++i) {
      run.end = std::max(run.end, read_[i].end);
    }
    if (run.end - run.begin < kLeastBytes) continue;
    // Advice: pages that are locked, which the system keeps, cost no more than their memory.
    (void)madvise(reinterpret_cast<void*>(run.begin), run.end - run.begin, MADV_DONTNEED);
  }
  read_.clear();
  read_bytes_ = 0;
}

// Lines of /proc/self/maps are "7f12a000-7f12e000 r--s 00000000 fe:00 1234   /models/model.tflite",
// in the order of their addresses; what was mapped last, as a model, is among the first. Empty
// where it is something else, or the system does not tell.
FilePages::Range FilePages::SharedFileAt(const void* address) {
  constexpr size_t kSharing = 4;  // of " r--s", behind the addresses
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range;
    const char* const end = line.data() + line.size();
    const char* const dash = std::from_chars(line.data(), end, range.begin, 16).ptr;
    if (dash == end) break;
    const char* const rights = std::from_chars(dash + 1, end, range.end, 16).ptr;
    if (range.end <= at) continue;
    if (range.begin > at) break;
    const auto place = static_cast<size_t>(rights - line.data());
    const bool shared = place + kSharing < line.size() && line[place + kSharing] == 's';
    return shared && line.find('/', place) != std::string::npos ? range : Range();
  }
  return {};
}

}  // namespace fuselite
