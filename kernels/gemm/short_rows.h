// The functions that bring rows of activations to int16 with their zero points taken off, or to
// bytes: what quantized and hybrid kernels compute from.
#pragma once

#include <cstdint>

#include "kernels/dynamic_quantization/dynamic_groups.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// The functions of one target.
struct ShortRowFunctions {
  static constexpr int kMaxScales = 16;
  // to[i] = from[i] + offset
  void (*widen_s8)(const int8_t* from, int64_t n, int32_t offset, int16_t* to);
  void (*widen_u8)(const uint8_t* from, int64_t n, int32_t offset, int16_t* to);
  DynamicGroups::ExtendRange* extend_range;
  // to[i] = MakeDynamicScale(ranges[i], true), `n` at most kMaxScales.
  void (*make_scales)(const DynamicRange* ranges, int64_t n, DynamicScale* to);
  // As QuantizeDynamically, but for NaN, whose result is any.
  void (*quantize)(const float* from, int64_t n, const DynamicScale& scale, int16_t* to);
  // As `quantize`, but its results plus scale.offset + 128, which are bytes.
  void (*quantize_u8)(const float* from, int64_t n, const DynamicScale& scale, uint8_t* to);
};

// The version for `isa`; null below SSSE3.
const ShortRowFunctions* FindShortRowFunctions(Isa isa);

}  // namespace fuselite::kernels
