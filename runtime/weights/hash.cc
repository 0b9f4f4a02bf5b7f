#include "runtime/weights/hash.h"

// Header only: nothing to link, and nothing of it in the library's exports.
#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(__x86_64__)
#include "runtime/cpu/isa.h"
#include "runtime/weights/hash_avx2.h"
#endif

namespace fuselite {
namespace {

#if defined(__x86_64__)
// Weights are megabytes, which are hashed when a model is opened. Fewer bytes are not worth asking.
constexpr size_t kLong = 4096;

bool HasAvx2() {
  static const bool has = DetectIsa().has(Feature::kAvx2);
  return has;
}
#endif

}  // namespace

Hash128 HashBytes(const void* data, size_t bytes, uint64_t seed) {
#if defined(__x86_64__)
  if (bytes >= kLong && HasAvx2()) return internal::HashLongAvx2(data, bytes, seed);
#endif
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, seed);
  return {hash.low64, hash.high64};
}

}  // namespace fuselite
