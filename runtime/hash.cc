#include "runtime/hash.h"

// Header only: nothing to link, and nothing of it in the library's exports.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fuselite {

Hash128 HashBytes(const void* data, size_t bytes, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, seed);
  return {hash.low64, hash.high64};
}

}  // namespace fuselite
