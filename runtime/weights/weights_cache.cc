#include "runtime/weights/weights_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "runtime/support/log.h"

namespace fuselite {
namespace {

std::string FileName(const Hash128& weights) {
  std::array<char, 48> name;
  const auto high = static_cast<unsigned long long>(weights.high);
  const auto low = static_cast<unsigned long long>(weights.low);
  std::snprintf(name.data(), name.size(), "%016llx%016llx.fuselite", high, low);
  return name.data();
}

// Makes the folder and those above it that are missing, for this user alone.
Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return Status();
  if (folder.has_parent_path()) {  // which ends at the root, a directory
    FUSELITE_RETURN_IF_ERROR(MakeFolder(folder.parent_path()));
  }
  if (mkdir(folder.c_str(), S_IRWXU) == 0) return Status();
  // Another process may have made it just now.
  const int reason = errno;
  if (std::filesystem::is_directory(folder, error)) return Status();
  return IoError(folder.string(), ": cannot be made: ", std::strerror(reason));
}

}  // namespace

WeightsCache::WeightsCache(CacheOptions options, std::span<const WeightsSource> weights,
                           ConstantHashes* hashes)
    : options_(std::move(options)) {
  Hash128 least{~uint64_t{0}, ~uint64_t{0}};
  for (const auto& [bytes, stays] : weights) {
    const Hash128 hash = hashes != nullptr ? hashes->HashOf(bytes.data(), bytes.size())
                                           : HashBytes(bytes.data(), bytes.size());
    least = std::min(least, hash);
    if (stays) hashes_[{bytes.data(), bytes.size()}] = hash;
  }
  report_.file = (std::filesystem::path(options_.directory) / FileName(least)).string();
  Result<std::shared_ptr<const PackedFile>> file = PackedFile::Open(report_.file);
  if (file.ok()) {
    file_ = *std::move(file);
  } else if (file.status().code() != StatusCode::kNotFound) {
    report_.problem = file.status().message();
    FUSELITE_LOG(kWarning) << "packed weights are not read: " << report_.problem;
  }
}

Hash128 WeightsCache::HashOf(const void* data, size_t bytes) const {
  const auto known = hashes_.find({data, bytes});
  return known != hashes_.end() ? known->second : HashBytes(data, bytes);
}

PackedWeights WeightsCache::Find(const Hash128& key, size_t bytes) {
  PackedWeights packed = file_ != nullptr ? file_->Find(key, bytes) : nullptr;
  if (packed != nullptr) {
    ++report_.found;
    used_[key] = packed;
  }
  return packed;
}

void WeightsCache::Keep(const Hash128& key, PackedWeights packed) {
  ++report_.made;
  kept_any_ = true;
  used_[key] = std::move(packed);
}

void WeightsCache::Save() {
  Status saved;
  if (kept_any_ && options_.mode == CacheMode::kReadWrite) saved = SaveFile();
  used_.clear();
  kept_any_ = false;
  if (saved.ok()) return;
  report_.problem = saved.message();
  FUSELITE_LOG(kWarning) << "packed weights are not kept: " << report_.problem;
}

Status WeightsCache::SaveFile() {
  std::vector<PackedBytes> packings;
  size_t own = 0;
  for (const auto& [key, packed] : used_) {
    packings.push_back({key, {packed->data(), packed->size()}});
    own += packed->size();
  }
  // What was read at the beginning may be old: another process may have written since.
  const Result<std::shared_ptr<const PackedFile>> now = PackedFile::Open(report_.file);
  if (now.ok()) {
    const PackedFile& file = **now;
    if (std::ranges::all_of(packings, [&](const PackedBytes& packing) {
          return file.Find(packing.key, packing.bytes.size()) != nullptr;
        })) {
      return Status();
    }
    std::vector<PackedBytes> others;
    size_t of_others = 0;
    for (const FileEntry& entry : file.entries()) {
      if (used_.contains(entry.key) || file.Find(entry.key, entry.bytes) == nullptr) continue;
      others.push_back({entry.key, file.BytesOf(entry)});
      of_others += entry.bytes;
    }
    if (of_others <= kMostOfOthers * own) {
      packings.insert(packings.end(), others.begin(), others.end());
    }
  }
  FUSELITE_RETURN_IF_ERROR(MakeFolder(options_.directory));
  return WritePackedFile(report_.file, packings);
}

}  // namespace fuselite
