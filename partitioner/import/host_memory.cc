#include "partitioner/import/host_memory.h"

#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {

void* NoBytes() {
  static std::byte no_bytes[1];
  return no_bytes;
}

Status NoMemory(const tflite::TfLiteContext* context, int tensor, size_t bytes) {
  return Internal("the host changed tensor ", tensor,
                  " without preparing its reader: ", context->tensors[tensor].bytes,
                  " bytes instead of ", bytes);
}

Result<void*> MemoryOf(const tflite::TfLiteContext* context, int tensor, size_t bytes) {
  void* const data = FindMemory(context, tensor, bytes);
  if (data == nullptr) return NoMemory(context, tensor, bytes);
  return data;
}

Status Resize(tflite::TfLiteContext* context, int tensor, const Shape& shape) {
  tflite::IntArrayPtr dims = tflite::MakeIntArray(shape.dims());
  if (dims == nullptr) return OutOfMemory("no memory for a shape");
  if (context->ResizeTensor(context, &context->tensors[tensor], dims.release()) !=
      tflite::kTfLiteOk) {
    return Internal("the host cannot resize output tensor ", tensor);
  }
  return Status();
}

}  // namespace fuselite::partitioner
