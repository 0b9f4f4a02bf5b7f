#include "runtime/weights/packed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace fuselite {
namespace {

constexpr char kMagic[8] = {'f', 'u', 's', 'e', 'l', 'i', 't', 'e'};
constexpr uint32_t kFormat = 1;

// Whether the entry's packing, with what may be read behind it, lies in a file of `size` bytes.
bool Lies(const FileEntry& entry, uint64_t first, uint64_t size) {
  return entry.at % kAlignment == 0 && entry.at >= first && entry.at <= size &&
         entry.bytes <= size - entry.at && size - entry.at - entry.bytes >= kAlignment;
}

Result<std::span<const FileEntry>> EntriesOf(std::span<const std::byte> file) {
  FileHeader header;
  if (file.size() < sizeof header) return InvalidArgument("truncated");
  std::memcpy(&header, file.data(), sizeof header);
  if (!std::equal(std::begin(kMagic), std::end(kMagic), header.magic) || header.format != kFormat) {
    return InvalidArgument("not a file of packed weights that this version reads");
  }
  if (header.build != BuildIdentity()) return InvalidArgument("written by another build");
  const uint64_t index_bytes = uint64_t{header.entries} * sizeof(FileEntry);
  const uint64_t first = sizeof header + index_bytes;
  if (header.file_bytes != file.size() || first > file.size()) return InvalidArgument("truncated");
  const std::span entries(reinterpret_cast<const FileEntry*>(file.data() + sizeof header),
                          header.entries);
  if (HashBytes(entries.data(), index_bytes) != header.index) {
    return InvalidArgument("its index was changed");
  }
  for (const FileEntry& entry : entries) {
    if (!Lies(entry, first, file.size())) return InvalidArgument("its index was changed");
  }
  // What is found by a key is the one entry that has it.
  const auto not_below = [](const FileEntry& a, const FileEntry& b) { return a.key >= b.key; };
  if (std::ranges::adjacent_find(entries, not_below) != entries.end()) {
    return InvalidArgument("its index was changed");
  }
  return entries;
}

// Who was killed while it wrote left a file behind; who still writes after an hour writes to a
// device that hangs.
constexpr auto kLongestWrite = std::chrono::hours(1);

void RemoveLeftovers(const std::filesystem::path& path) {
  std::error_code error;
  const std::string begin = path.filename().string() + '.';
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::directory_iterator at(path.parent_path(), error), end;
  for (; at != end; at.increment(error)) {  // which ends where there is an error
    if (!at->path().filename().string().starts_with(begin)) continue;
    std::error_code gone;
    const auto written = at->last_write_time(gone);
    if (!gone && now - written > kLongestWrite) std::filesystem::remove(at->path(), gone);
  }
}

// A new file beside `path` that has no reader before it has `path`'s name.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), name_(path + ".XXXXXX") {
    fd_ = mkostemp(name_.data(), O_CLOEXEC);  // permissions 0600
    if (fd_ >= 0) return;
    error_ = errno;
    name_.clear();
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // There is neither a file -1 nor one without a name.
  ~NewFile() {
    close(fd_);
    unlink(name_.c_str());
  }

  void Append(const void* data, size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (error_ == 0 && bytes > 0) {
      const ssize_t written = write(fd_, at, bytes);
      if (written < 0) {
        if (errno != EINTR) error_ = errno;
        continue;
      }
      at += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  Status Publish() {
    if (error_ == 0 && std::rename(name_.c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) return IoError(path_, ": cannot be written: ", std::strerror(error_));
    name_.clear();
    return Status();
  }

 private:
  std::string path_;
  std::string name_;  // empty: it has none of its own
  int fd_ = -1;
  int error_ = 0;
};

}  // namespace

Result<std::shared_ptr<const PackedFile>> PackedFile::Open(const std::string& path) {
  FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::OpenPrivate(path));
  const Result<std::span<const FileEntry>> entries = EntriesOf(file->bytes());
  if (!entries.ok()) return entries.status().In(path);
  return std::shared_ptr<const PackedFile>(new PackedFile(std::move(file), *entries));
}

PackedWeights PackedFile::Find(const Hash128& key, size_t bytes) const {
  const auto entry = std::ranges::lower_bound(entries_, key, {}, &FileEntry::key);
  if (entry == entries_.end() || entry->key != key || entry->bytes != bytes) return nullptr;
  const std::span<const std::byte> packed = BytesOf(*entry);
  if (HashBytes(packed.data(), packed.size()) != entry->content) return nullptr;
  return std::make_shared<const AlignedBuffer>(
      shared_from_this(), const_cast<std::byte*>(packed.data()), packed.size());
}

Status WritePackedFile(const std::string& path, std::span<const PackedBytes> packings) {
  std::vector<PackedBytes> sorted(packings.begin(), packings.end());
  std::ranges::sort(sorted, {}, &PackedBytes::key);
  std::vector<FileEntry> entries;
  uint64_t at = AlignUp(sizeof(FileHeader) + sorted.size() * sizeof(FileEntry));
  for (const PackedBytes& packing : sorted) {
    const size_t bytes = packing.bytes.size();
    entries.push_back({packing.key, at, bytes, HashBytes(packing.bytes.data(), bytes)});
    at += AlignUp(bytes) + kAlignment;
  }
  FileHeader header{};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.format = kFormat;
  header.entries = static_cast<uint32_t>(entries.size());
  header.file_bytes = at;
  header.build = BuildIdentity();
  header.index = HashBytes(entries.data(), entries.size() * sizeof(FileEntry));

  RemoveLeftovers(path);
  NewFile file(path);
  constexpr std::byte kZeros[2 * kAlignment] = {};
  file.Append(&header, sizeof header);
  file.Append(entries.data(), entries.size() * sizeof(FileEntry));
  uint64_t end = sizeof header + entries.size() * sizeof(FileEntry);
  for (size_t i = 0; i < entries.size(); ++i) {
    file.Append(kZeros, entries[i].at - end);
    file.Append(sorted[i].bytes.data(), sorted[i].bytes.size());
    end = entries[i].at + entries[i].bytes;
  }
  file.Append(kZeros, at - end);
  return file.Publish();
}

}  // namespace fuselite
