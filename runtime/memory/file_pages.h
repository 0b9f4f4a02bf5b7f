// Pages of a file that this process has mapped, and has read for the last time.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace fuselite {

// Takes pages out of this process where that changes nothing but the memory it holds: in shared
// mappings of a file, as LiteRT's and MappedFile's are, a page that is read once more comes from
// the system's copy of the file. What lies elsewhere (a model in the heap, a private mapping, whose
// changes would be lost) stays. Without it whoever packs a model's weights has them twice.
//
// Thread-safe. What it was told of stays mapped as long as it lives.
class FilePages {
 public:
  // Of the mapping that holds `address`; null: of none.
  explicit FilePages(const void* address) : address_(address) {}
  ~FilePages();
  FilePages(const FilePages&) = delete;
  FilePages& operator=(const FilePages&) = delete;

  // `bytes` from `data` have been read and are hardly read again. What is small and far from others
  // stays, and all as long as it is less than 1 MiB together.
  void WereRead(const void* data, size_t bytes);

 private:
  struct Range {  // addresses
    size_t begin = 0, end = 0;
    bool Holds(const Range& inner) const { return begin <= inner.begin && inner.end <= end; }
  };
  static Range SharedFileAt(const void* address);
  void GiveBack();

  const void* const address_;
  std::mutex mutex_;
  std::vector<Range> read_;  // whole pages
  size_t read_bytes_ = 0;
  std::optional<Range> file_;  // once it was needed
};

}  // namespace fuselite
