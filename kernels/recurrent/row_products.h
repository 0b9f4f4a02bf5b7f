// Products of one row with weights, float32 or hybrid, and activations: what the kernels of
// recurrent operators have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/fields.h"
#include "kernels/unpacked/unpacked_row.h"

namespace fuselite::kernels {

inline float Activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kRelu: return std::max(x, 0.0f);
    case Activation::kReluN1To1: return std::clamp(x, -1.0f, 1.0f);
    case Activation::kRelu6: return std::clamp(x, 0.0f, 6.0f);
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSignBit: return std::signbit(x) ? 1.0f : 0.0f;
    default: return x;
  }
}

// A vector that weights are multiplied with.
struct RowOperand {
  const float* values;
  int64_t n;
  // Is used by the hybrid form; null in float32.
  const int16_t* quantized = nullptr;
  float scale = 0;
};

// `quantized`: room for n values in the hybrid form, null in float32.
inline RowOperand PrepareRow(const float* values, int64_t n, bool asymmetric, int16_t* quantized) {
  if (quantized == nullptr) return {values, n};
  const DynamicScale scale = QuantizeDynamically(values, 1, n, n, asymmetric, quantized);
  return {values, n, quantized, scale.scale};
}

// to[u] = row u of `weights`, float32 or int8 with a scale, times `x`, u < units. 32-bit sums wrap
// around, as TFLite's do.
inline void RowProducts(const UnpackedFunctions& functions, const void* weights, int64_t units,
                        float weight_scale, const RowOperand& x, float* to) {
  if (x.quantized == nullptr) return functions.floats({x.values, weights, x.n, units, 0, to});
  functions.int8({x.quantized, weights, x.n, units, 0, to});
  const float scale = x.scale * weight_scale;
  for (int64_t u = 0; u < units; ++u) {
    int32_t sum;
    std::memcpy(&sum, to + u, sizeof sum);
    to[u] = static_cast<float>(sum) * scale;
  }
}

// Row `row` of `weights` times `x`, summed in order.
inline float RowProduct(const void* weights, int64_t row, float weight_scale, const RowOperand& x) {
  const size_t value_bytes = x.quantized == nullptr ? sizeof(float) : sizeof(int8_t);
  float product;
  RowProducts(ScalarUnpackedFunctions(),
              static_cast<const std::byte*>(weights) + row * x.n * value_bytes, 1, weight_scale, x,
              &product);
  return product;
}

}  // namespace fuselite::kernels
