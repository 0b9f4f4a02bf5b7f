// Where the host has the bytes of its tensors, and how many it is to have.
#pragma once

#include <cstddef>

#include "runtime/support/status.h"
#include "runtime/tensor.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// Stands for the bytes of a tensor without elements, whose pointer may be null in the host.
void* NoBytes();

// Where the host has the tensor now; null where it has less than so many bytes.
inline void* FindMemory(const tflite::TfLiteContext* context, int tensor, size_t bytes) {
  const tflite::TfLiteTensor& host = context->tensors[tensor];
  if (bytes == 0) return NoBytes();
  return host.bytes < bytes ? nullptr : host.data.data;
}
// The error of that.
Status NoMemory(const tflite::TfLiteContext* context, int tensor, size_t bytes);

Result<void*> MemoryOf(const tflite::TfLiteContext* context, int tensor, size_t bytes);

// Gives an output of a node this shape.
Status Resize(tflite::TfLiteContext* context, int tensor, const Shape& shape);

}  // namespace fuselite::partitioner
