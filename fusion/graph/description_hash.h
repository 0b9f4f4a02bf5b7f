// When two operations are the same.
#pragma once

#include <cstddef>

#include "kernels/operator.h"
#include "runtime/weights/hash.h"

namespace fuselite::fusion {

// Constants of up to so many bytes count by what they hold: shapes, axes and the like, which are
// computed before the graph is built, and gone afterwards.
inline constexpr size_t kHashedByContent = 512;

// Equal for operations that every kernel computes alike, constants included: larger ones count by
// where they are.
Hash128 HashOf(const kernels::OpDescription& op);

}  // namespace fuselite::fusion
