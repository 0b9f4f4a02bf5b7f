// A few neighbouring output pixels of a depthwise convolution, all channels, in float32.
#pragma once

#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// out[j][c] = min(max(bias[c] + sum over ky, kx of
//   pixels[ky * span + j * stride + kx * dilation][c] * filters[(ky * filter_w + kx) * channels +
//   c], min), max), 0 <= j < count.
// Pixels outside of the image point to zeros. Sums run over ky, then kx, in one accumulator each.
struct DepthwiseBlockF32 {
  const float* const* pixels;
  int64_t span;  // pixels under a row of the windows: (count - 1) * stride + ... + 1
  const float* filters;
  int32_t filter_h, filter_w;
  int32_t stride, dilation;  // along the row
  int64_t channels;
  const float* bias;  // null for none
  float min, max;
  float* out;
  int64_t out_pitch;
};

struct DepthwiseF32 {
  int max_count;
  // count: a power of two up to max_count.
  void (*run)(const DepthwiseBlockF32& block, int count);
};

// The version for `isa`; null below SSSE3.
const DepthwiseF32* FindDepthwiseF32(Isa isa);

}  // namespace fuselite::kernels
