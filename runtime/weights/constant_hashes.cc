#include "runtime/weights/constant_hashes.h"

namespace fuselite {

void ConstantHashes::Add(const void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  hashes_.try_emplace({data, bytes});
}

Hash128 ConstantHashes::HashOf(const void* data, size_t bytes) {
  std::optional<Hash128>* known = nullptr;  // entries stay where they are
  {
    const std::lock_guard lock(mutex_);
    const auto found = hashes_.find({data, bytes});
    if (found != hashes_.end()) {
      if (found->second) return *found->second;
      known = &found->second;
    }
  }
  const Hash128 hash = HashBytes(data, bytes);
  if (known != nullptr) {
    const std::lock_guard lock(mutex_);
    *known = hash;
  }
  return hash;
}

}  // namespace fuselite
