// Packed weights that are kept in a folder, so that a model that was opened before opens without
// packing, and processes that open it share the memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/weights/constant_hashes.h"
#include "runtime/weights/hash.h"
#include "runtime/weights/packed_file.h"
#include "runtime/weights/packed_store.h"

namespace fuselite {

enum class CacheMode : uint8_t { kOff, kRead, kReadWrite };

struct CacheOptions {
  std::string directory;  // empty: there is no cache
  CacheMode mode = CacheMode::kReadWrite;

  bool on() const { return !directory.empty() && mode != CacheMode::kOff; }
};

// What became of the cache while one partition was compiled.
struct CacheReport {
  std::string file;  // empty: there is no cache
  int found = 0;     // packings that lay in the file
  int made = 0;      // that did not, or had been packed in this process
  // The reason why the file was not taken, or could not be written; empty where all went well.
  std::string problem;
};

// A constant from which much is packed. `stays`: no other constant can have its address while the
// cache is in use.
struct WeightsSource {
  std::span<const std::byte> bytes;
  bool stays = false;
};

// The cache of one set of weights: a file whose name is the least of the weights' hashes. Whatever
// shapes and options they are packed for, their packings lie side by side in it, and signatures of
// which one has a few weights more than the other share it, too. For one thread at a time; other
// caches, of this process and of others, may have the same file.
//
// No fault of the folder or the file is an error: what cannot be read is packed, what cannot be
// written is not kept, and report() tells of it.
class WeightsCache {
 public:
  // Models with a part of their weights in common share a file, which is not to grow for ever.
  static constexpr size_t kMostOfOthers = 8;

  // Precondition: options.on(). The order of `weights` does not matter. `hashes`, which may be
  // null, is asked for theirs.
  WeightsCache(CacheOptions options, std::span<const WeightsSource> weights,
               ConstantHashes* hashes = nullptr);

  // HashBytes; what the constructor hashed is not hashed again.
  Hash128 HashOf(const void* data, size_t bytes) const;
  // Null where the file does not have it.
  PackedWeights Find(const Hash128& key, size_t bytes);
  void Keep(const Hash128& key, PackedWeights packed);

  // Writes the file anew where it lacks something that was kept, with what else it had: unless that
  // is kMostOfOthers times as much as what this cache was asked for, when it is dropped.
  void Save();
  const CacheReport& report() const { return report_; }

 private:
  Status SaveFile();

  CacheOptions options_;
  std::map<std::pair<const void*, size_t>, Hash128> hashes_;  // of constants that stay
  std::shared_ptr<const PackedFile> file_;                    // null: there is none
  std::map<Hash128, PackedWeights> used_;                     // found or kept
  bool kept_any_ = false;
  CacheReport report_;
};

}  // namespace fuselite
