// Where the host has the bytes of its tensors.
#pragma once

#include "partitioner/build_graph.h"
#include "runtime/tflite_abi.h"

namespace fuselite::partitioner {

// Stands for the bytes of a tensor without elements, whose pointer may be null in the host.
void* NoBytes();

// Where the host has the tensor now; null where it has less than was bound.
inline void* FindMemory(const tflite::TfLiteContext* context, const BoundTensor& bound) {
  const tflite::TfLiteTensor& tensor = context->tensors[bound.tensor];
  if (bound.bytes == 0) return NoBytes();
  return tensor.bytes < bound.bytes ? nullptr : tensor.data.data;
}
// The error of that.
Status NoMemory(const tflite::TfLiteContext* context, const BoundTensor& bound);

Result<void*> MemoryOf(const tflite::TfLiteContext* context, const BoundTensor& bound);

}  // namespace fuselite::partitioner
