#include "partitioner/host_outputs.h"

#include <cstring>

#include "runtime/tflite_arrays.h"

namespace fuselite::partitioner {

using namespace tflite;

Status Resize(TfLiteContext* context, int tensor, const Shape& shape) {
  IntArrayPtr dims = MakeIntArray(shape.dims());
  if (dims == nullptr) return OutOfMemory("no memory for a shape");
  if (context->ResizeTensor(context, &context->tensors[tensor], dims.release()) != kTfLiteOk) {
    return Internal("the host cannot resize output tensor ", tensor);
  }
  return Status();
}

Status CopyTo(TfLiteTensor& tensor, const ConstantOutput& constant) {
  const size_t bytes = constant.value.info.bytes();
  if (bytes == 0) return Status();
  if (tensor.data.data == nullptr || tensor.bytes < bytes) {
    return Internal("the host gives output tensor ", constant.tensor, " no memory");
  }
  std::memcpy(tensor.data.data, constant.value.info.data, bytes);
  return Status();
}

bool IsMemoryOfTheUser(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteCustom;
}

Status Publish(TfLiteContext* context, const ConstantOutput& constant) {
  TfLiteTensor& tensor = context->tensors[constant.tensor];
  if (IsMemoryOfTheUser(tensor)) return Resize(context, constant.tensor, constant.value.info.shape);
  if (tensor.allocation_type != kTfLitePersistentRo) {
    // Dynamic memory is the tensor's own already.
    if (tensor.allocation_type != kTfLiteDynamic) tensor.data.data = nullptr;
    tensor.allocation_type = kTfLitePersistentRo;
  }
  FUSELITE_RETURN_IF_ERROR(Resize(context, constant.tensor, constant.value.info.shape));
  return CopyTo(tensor, constant);
}

}  // namespace fuselite::partitioner
