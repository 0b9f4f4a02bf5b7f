// When two operations are the same.
#pragma once

#include "kernels/operator.h"
#include "runtime/hash.h"

namespace fuselite::fusion {

// Equal for operations that every kernel computes alike, constants included: those of a few bytes
// count by what they hold, larger ones by where they are.
Hash128 HashOf(const kernels::OpDescription& op);

}  // namespace fuselite::fusion
