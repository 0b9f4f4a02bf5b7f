#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "runtime/tflite/types.h"

// Making and reading the length-prefixed arrays of TensorFlow Lite's interface. A host frees what
// it takes over with free(), so they are allocated with malloc.

namespace fuselite::tflite {

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using IntArrayPtr = std::unique_ptr<TfLiteIntArray, FreeDeleter>;
using FloatArrayPtr = std::unique_ptr<TfLiteFloatArray, FreeDeleter>;

// The elements; none for a null array.
inline std::span<int> Elements(TfLiteIntArray* array) {
  return array ? std::span<int>(array->data, array->size) : std::span<int>();
}
inline std::span<const int> Elements(const TfLiteIntArray* array) {
  return array ? std::span<const int>(array->data, array->size) : std::span<const int>();
}
inline std::span<const float> Elements(const TfLiteFloatArray* array) {
  return array ? std::span<const float>(array->data, array->size) : std::span<const float>();
}

// A copy of `values`; null only where memory is exhausted.
inline IntArrayPtr MakeIntArray(std::span<const int> values) {
  void* memory = std::malloc(sizeof(TfLiteIntArray) + values.size_bytes());
  auto* array = static_cast<TfLiteIntArray*>(memory);
  if (array == nullptr) return nullptr;
  array->size = static_cast<int>(values.size());
  if (!values.empty()) std::memcpy(array->data, values.data(), values.size_bytes());
  return IntArrayPtr(array);
}
inline FloatArrayPtr MakeFloatArray(std::span<const float> values) {
  void* memory = std::malloc(sizeof(TfLiteFloatArray) + values.size_bytes());
  auto* array = static_cast<TfLiteFloatArray*>(memory);
  if (array == nullptr) return nullptr;
  array->size = static_cast<int>(values.size());
  if (!values.empty()) std::memcpy(array->data, values.data(), values.size_bytes());
  return FloatArrayPtr(array);
}

}  // namespace fuselite::tflite
