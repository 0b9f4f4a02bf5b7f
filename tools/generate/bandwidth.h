// How fast a decoder could be if only the memory counted.
#pragma once

#include <cstdint>

#include "interpreter/model.h"

namespace fuselite::tools {

// Bytes of constants that the matrix products of a subgraph read in a run, as the file has them:
// block scales are counted, and weights behind DEQUANTIZE as they are before.
int64_t ProductWeightBytes(const interpreter::Model& model, int subgraph);

// Bytes that `threads` threads read from memory in a second: the best of some passes over a block
// that fits no cache.
double MeasureReadBandwidth(int threads);

}  // namespace fuselite::tools
