// The quotient of whole numbers, rounded up.
#pragma once

#include <cstdint>

namespace fuselite {

// How many pieces of `b` hold `a`. Precondition: a >= 0, b > 0, and a + b fits.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace fuselite
