// The search for the label of a box with the best score.
#pragma once

#include <cstdint>
#include <tuple>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// The first of the greatest of `count` scores, at least one. A NaN is greater than nothing, and
// nothing is greater than a NaN in the first place. Reads nothing outside of the scores.
template <class T>
using BestLabelFunction = int32_t(const T* scores, int32_t count);
using BestLabelFunctions = std::tuple<BestLabelFunction<float>*, BestLabelFunction<uint8_t>*>;

// Plain loops.
const BestLabelFunctions& PlainBestLabel();
// The version for `isa`; null below SSSE3.
const BestLabelFunctions* FindBestLabel(Isa isa);

}  // namespace fuselite::kernels
