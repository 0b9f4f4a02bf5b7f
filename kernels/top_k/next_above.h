// The search for a row's next value that may be among its largest.
#pragma once

#include <cstdint>
#include <tuple>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// The first i in [from, size) whose value is not `least` or below, as no NaN is; `size` where there
// is none. Reads nothing outside of the row.
template <class T>
using NextAboveFunction = int64_t(const T* row, int64_t from, int64_t size, T least);

using NextAboveFunctions = std::tuple<NextAboveFunction<float>*, NextAboveFunction<int8_t>*,
                                      NextAboveFunction<uint8_t>*, NextAboveFunction<int16_t>*,
                                      NextAboveFunction<int32_t>*, NextAboveFunction<int64_t>*>;

// Plain loops.
const NextAboveFunctions& PlainNextAbove();
// The version for `isa`; null below SSSE3.
const NextAboveFunctions* FindNextAbove(Isa isa);

}  // namespace fuselite::kernels
