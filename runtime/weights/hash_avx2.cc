// HashBytes of long contents with AVX2 (CMakeLists.txt compiles this file for it): the same hash in
// half of the instructions. Nothing else may stand here, as no other machine may run it.
#include "runtime/weights/hash_avx2.h"

#if defined(__AVX2__)

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fuselite::internal {

Hash128 HashLongAvx2(const void* data, size_t bytes, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, seed);
  return {hash.low64, hash.high64};
}

}  // namespace fuselite::internal

#endif  // __AVX2__
