// What hosts allocate with malloc() and whoever takes it over frees with free(). Where the system
// refuses it, std::bad_alloc is thrown, which ends the call that needed it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

#include "runtime/tflite/abi.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::interpreter {

// Whether the tensor's memory is its own, from malloc().
inline bool IsOnHeap(const tflite::TfLiteTensor& tensor) {
  return tensor.allocation_type == tflite::kTfLiteDynamic ||
         tensor.allocation_type == tflite::kTfLitePersistentRo;
}

inline void* AllocateZeros(size_t bytes) {
  void* const memory = std::calloc(1, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

template <class T>
T* NewStruct() {
  return static_cast<T*>(AllocateZeros(sizeof(T)));
}

inline tflite::TfLiteIntArray* NewIntArray(std::span<const int> values) {
  tflite::IntArrayPtr array = tflite::MakeIntArray(values);
  if (array == nullptr) throw std::bad_alloc();
  return array.release();
}

inline tflite::TfLiteFloatArray* NewFloatArray(std::span<const float> values) {
  tflite::FloatArrayPtr array = tflite::MakeFloatArray(values);
  if (array == nullptr) throw std::bad_alloc();
  return array.release();
}

// The array keeps what it has where there is no memory.
inline void Replace(tflite::TfLiteIntArray*& array, std::span<const int> values) {
  std::free(std::exchange(array, NewIntArray(values)));
}

}  // namespace fuselite::interpreter
