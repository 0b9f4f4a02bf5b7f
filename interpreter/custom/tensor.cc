// TfLiteOpaqueTensor and its builder.
#include <cstring>
#include <new>
#include <span>

#include "interpreter/custom/structs.h"
#include "runtime/support/is_index.h"
#include "runtime/tflite/arrays.h"

namespace tflite = fuselite::tflite;
using fuselite::custom::ToTensor;

struct TfLiteOpaqueTensorBuilder {
  tflite::TfLiteType type = tflite::kTfLiteNoType;
  void* data = nullptr;
  tflite::TfLiteAllocationType allocation_type = tflite::kTfLiteArenaRw;
  tflite::TfLiteQuantizationParams params{};
};

namespace {

// As the file has it: with -1 where a dimension may change.
std::span<const int> Signature(const TfLiteOpaqueTensor* tensor) {
  const auto signature = tflite::Elements(ToTensor(tensor)->dims_signature);
  return signature.empty()
             ? tflite::Elements(const_cast<const tflite::TfLiteIntArray*>(ToTensor(tensor)->dims))
             : signature;
}

}  // namespace

extern "C" {

TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* tensor) {
  return static_cast<TfLiteType>(ToTensor(tensor)->type);
}

int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* tensor) {
  const auto* dims = ToTensor(tensor)->dims;
  return dims != nullptr ? dims->size : -1;
}

int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* tensor, int32_t index) {
  const auto dims = tflite::Elements(ToTensor(tensor)->dims);
  return fuselite::IsIndex(index, dims.size()) ? dims[index] : -1;
}

TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* tensor,
                                                   int32_t* count) {
  *count = static_cast<int32_t>(Signature(tensor).size());
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* tensor, int32_t index,
                                               int32_t* length) {
  const auto signature = Signature(tensor);
  if (!fuselite::IsIndex(index, signature.size())) return kTfLiteError;
  *length = signature[index];
  return kTfLiteOk;
}

int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* tensor) {
  return ToTensor(tensor)->is_variable ? 1 : 0;
}
size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* tensor) {
  return ToTensor(tensor)->bytes;
}
void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* tensor) {
  return tensor != nullptr ? ToTensor(tensor)->data.data : nullptr;
}
const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* tensor) {
  return ToTensor(tensor)->name;
}
TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* tensor) {
  return static_cast<TfLiteAllocationType>(ToTensor(tensor)->allocation_type);
}
TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* tensor) {
  return {ToTensor(tensor)->params.scale, ToTensor(tensor)->params.zero_point};
}

TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* tensor, const void* data,
                                              size_t size) {
  if (ToTensor(tensor)->bytes != size || ToTensor(tensor)->data.data == nullptr)
    return kTfLiteError;
  std::memcpy(ToTensor(tensor)->data.data, data, size);
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* tensor, void* data,
                                            size_t size) {
  if (ToTensor(tensor)->bytes != size || ToTensor(tensor)->data.data == nullptr)
    return kTfLiteError;
  std::memcpy(data, ToTensor(tensor)->data.data, size);
  return kTfLiteOk;
}

// As the host's own operators do it: what the arena gave is forgotten, the heap's is made by the
// first resize.
void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* tensor) {
  tflite::TfLiteTensor& changed = *ToTensor(tensor);
  if (changed.allocation_type == tflite::kTfLiteDynamic) return;
  changed.allocation_type = tflite::kTfLiteDynamic;
  changed.data.data = nullptr;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void) {
  return new (std::nothrow) TfLiteOpaqueTensorBuilder;
}
void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder) { delete builder; }
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder* builder,
                                                            TfLiteType type) {
  builder->type = static_cast<tflite::TfLiteType>(type);
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder* builder,
                                                            void* data) {
  builder->data = data;
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteAllocationType allocation_type) {
  builder->allocation_type = static_cast<tflite::TfLiteAllocationType>(allocation_type);
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantizationParams params) {
  builder->params = {params.scale, params.zero_point};
  return builder;
}

TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                          TfLiteOpaqueTensorBuilder* builder, int* new_index) {
  tflite::TfLiteContext* host = fuselite::custom::ToContext(context);
  int index = -1;
  if (host->AddTensors(host, 1, &index) != tflite::kTfLiteOk) return kTfLiteError;
  tflite::TfLiteTensor& tensor = host->tensors[index];
  tensor.type = builder->type;
  tensor.data.data = builder->data;
  tensor.allocation_type = builder->allocation_type;
  tensor.params = builder->params;
  *new_index = index;
  return kTfLiteOk;
}

}  // extern "C"
