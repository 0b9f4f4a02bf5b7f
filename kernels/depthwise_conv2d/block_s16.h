// A few neighbouring output pixels of a depthwise convolution, all channels, as sums of int16
// products.
#pragma once

#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// out[j][c] = bias[c] + sum over t < taps of
//   pixels[offsets[t] + j * stride][c] * filters[t * channels + c],  0 <= j < count,
// wrapping around. Pixels outside of the image point to zeros.
struct DepthwiseBlockS16 {
  const int16_t* const* pixels;
  const int32_t* offsets;
  int32_t taps;  // even
  int32_t stride;
  const int16_t* filters;
  int64_t channels;  // a multiple of kChannels
  const int32_t* bias;
  int32_t* out;  // rows of `channels`, side by side
};

struct DepthwiseS16 {
  static constexpr int kChannels = 8;
  int max_count;
  // count: a power of two up to max_count.
  void (*run)(const DepthwiseBlockS16& block, int count);
};

// The version for `isa`; null below SSSE3.
const DepthwiseS16* FindDepthwiseS16(Isa isa);

}  // namespace fuselite::kernels
