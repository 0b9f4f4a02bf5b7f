// What HashBytes calls on machines with AVX2.
#pragma once

#include "runtime/weights/hash.h"

namespace fuselite::internal {

// HashBytes(data, bytes, seed). On x86-64 only.
Hash128 HashLongAvx2(const void* data, size_t bytes, uint64_t seed);

}  // namespace fuselite::internal
