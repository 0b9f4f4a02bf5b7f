#include "partitioner/host_memory.h"

namespace fuselite::partitioner {

void* NoBytes() {
  static std::byte no_bytes[1];
  return no_bytes;
}

Status NoMemory(const tflite::TfLiteContext* context, const BoundTensor& bound) {
  return Internal("the host changed tensor ", bound.tensor,
                  " without preparing its reader: ", context->tensors[bound.tensor].bytes,
                  " bytes instead of ", bound.bytes);
}

Result<void*> MemoryOf(const tflite::TfLiteContext* context, const BoundTensor& bound) {
  void* const data = FindMemory(context, bound);
  if (data == nullptr) return NoMemory(context, bound);
  return data;
}

}  // namespace fuselite::partitioner
