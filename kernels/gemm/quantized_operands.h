// Reading quantized operands of any supported pair of types in scalar code.
#pragma once

#include <cstdint>

#include "kernels/operator.h"
#include "kernels/packed_integers.h"

namespace fuselite::kernels {

// Calls f(x, weights): x a typed pointer to the activations, weights something with operator[]
// that gives an int32_t. False for pairs of types that no operator takes.
template <class F>
bool WithQuantizedOperands(DataType x_type, const void* x, DataType weights_type,
                           const void* weights, F&& f) {
  if (x_type == DataType::kUInt8 && weights_type == DataType::kUInt8) {
    f(static_cast<const uint8_t*>(x), static_cast<const uint8_t*>(weights));
    return true;
  }
  const auto with_weights = [&](auto* typed_x) {
    switch (weights_type) {
      case DataType::kInt8: f(typed_x, static_cast<const int8_t*>(weights)); return true;
      case DataType::kInt16: f(typed_x, static_cast<const int16_t*>(weights)); return true;
      case DataType::kInt4:
      case DataType::kInt2: f(typed_x, PackedIntegers(weights_type, weights)); return true;
      default: return false;
    }
  };
  if (x_type == DataType::kInt8) return with_weights(static_cast<const int8_t*>(x));
  if (x_type == DataType::kInt16) return with_weights(static_cast<const int16_t*>(x));
  return false;
}

}  // namespace fuselite::kernels
