// A fast hash of bytes: XXH3's 128 bits, the same on every machine and in every release.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace fuselite {

struct Hash128 {
  uint64_t low = 0, high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

// Tells contents apart; no defence against somebody who searches for collisions.
// `data` needs no alignment and may be null where bytes is 0.
Hash128 HashBytes(const void* data, size_t bytes, uint64_t seed = 0);

}  // namespace fuselite
