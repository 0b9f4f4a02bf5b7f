// Products of one row with weights, float32 or hybrid, and activations: what the reference kernels
// of recurrent operators have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/fields.h"
#include "kernels/gemm/dynamic_scale.h"

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
  // For the hybrid form; null in float32.
  const int16_t* quantized = nullptr;
  float scale = 0;
};

// `quantized`: room for n values in the hybrid form, null in float32.
inline RowOperand PrepareRow(const float* values, int64_t n, bool asymmetric, int16_t* quantized) {
  if (quantized == nullptr) return {values, n};
  const DynamicScale scale = QuantizeDynamically(values, 1, n, n, asymmetric, quantized);
  return {values, n, quantized, scale.scale};
}

// Row `row` of `weights`, float32 or int8 with a scale, times `x`.
inline float RowProduct(const void* weights, int64_t row, float weight_scale, const RowOperand& x) {
  if (x.quantized == nullptr) {
    const float* w = static_cast<const float*>(weights) + row * x.n;
    float sum = 0;
    for (int64_t i = 0; i < x.n; ++i) sum += w[i] * x.values[i];
    return sum;
  }
  const auto* w = static_cast<const int8_t*>(weights) + row * x.n;
  uint32_t sum = 0;  // wraps around, as TFLite's 32-bit sums do
  for (int64_t i = 0; i < x.n; ++i) sum += static_cast<uint32_t>(w[i] * x.quantized[i]);
  return static_cast<float>(static_cast<int32_t>(sum)) * (x.scale * weight_scale);
}

}  // namespace fuselite::kernels
