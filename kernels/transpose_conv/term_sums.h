// The matrix product under hybrid transposed convolutions: every term is scaled before it is added,
// as TFLite's kernel does.
#pragma once

#include <cstdint>

#include "runtime/isa.h"

namespace fuselite::kernels {

// c[r][n] = min(max(sum over k of (a[r][k] * b[k][n]) * scales[n] * scale + bias[n], min), max),
// the terms added in order of k, every operation rounded. `b` is packed as for GemmF32, in panels
// of the same width. Pitches count elements.
struct TermSumsBlock {
  const float* a;  // rows of `depth`, side by side
  int64_t rows;
  int64_t depth;
  const float* b;
  int64_t columns;
  const float* scales;
  float scale;
  const float* bias;  // null for none
  float min, max;
  float* c;
  int64_t c_pitch;
};
using TermSumsFunction = void(const TermSumsBlock& block);

// The version for `isa`; null below SSSE3.
TermSumsFunction* FindTermSums(Isa isa);

}  // namespace fuselite::kernels
