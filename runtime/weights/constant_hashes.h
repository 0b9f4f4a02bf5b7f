// Hashes of a host's constants, each made once.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/weights/hash.h"

namespace fuselite {

// A network that is compiled for one shape after the other asks for the packings of the same
// weights each time, and finds them by their hashes: 14 MB of MobileNetV2 take 0.6 ms. Thread-safe.
class ConstantHashes {
 public:
  // Remembers the hash of these bytes from the first time on that it is asked for. Precondition:
  // they stay where and what they are as long as this lives.
  void Add(const void* data, size_t bytes);
  // HashBytes of any bytes.
  Hash128 HashOf(const void* data, size_t bytes);

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, size_t>, std::optional<Hash128>> hashes_;  // guarded by mutex_
};

}  // namespace fuselite
