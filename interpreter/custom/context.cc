// TfLiteOpaqueContext: what an operator may ask of the interpreter; and the arrays that it hands
// over.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "interpreter/custom/structs.h"
#include "runtime/tensor.h"
#include "runtime/tflite/arrays.h"

namespace {

using fuselite::custom::FromStatus;
using fuselite::custom::FromTensor;
using fuselite::custom::TensorAt;
using fuselite::custom::ToContext;
using fuselite::custom::ToTensor;

// Longer messages are cut.
constexpr size_t kMaxMessage = 1024;

}  // namespace

extern "C" {

TfLiteIntArray* TfLiteIntArrayCreate(int size) {
  if (size < 0) return nullptr;
  auto* array = static_cast<TfLiteIntArray*>(
      std::calloc(1, sizeof(TfLiteIntArray) + sizeof(int) * static_cast<size_t>(size)));
  if (array != nullptr) array->size = size;
  return array;
}

TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* source) {
  if (source == nullptr) return nullptr;
  TfLiteIntArray* copy = TfLiteIntArrayCreate(source->size);
  if (copy != nullptr) std::copy_n(source->data, source->size, copy->data);
  return copy;
}

int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b) {
  if (a == b) return 1;
  if (a == nullptr || b == nullptr || a->size != b->size) return 0;
  return std::equal(a->data, a->data + a->size, b->data) ? 1 : 0;
}

void TfLiteIntArrayFree(TfLiteIntArray* array) { std::free(array); }

TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                             TfLiteOpaqueTensor* tensor, TfLiteIntArray* size) {
  return FromStatus(
      ToContext(context)->ResizeTensor(ToContext(context), ToTensor(tensor),
                                       reinterpret_cast<fuselite::tflite::TfLiteIntArray*>(size)));
}

void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context, const char* format,
                                      va_list arguments) {
  char message[kMaxMessage];
  std::vsnprintf(message, sizeof message, format, arguments);
  ToContext(context)->ReportError(ToContext(context), "%s", message);
}

void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  TfLiteOpaqueContextReportErrorVa(context, format, arguments);
  va_end(arguments);
}

TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* context,
                                                       int index) {
  return FromTensor(TensorAt(*ToContext(context), index));
}

size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context) {
  return ToContext(context)->tensors_size;
}

int TfLiteOpaqueContextGetNumThreads(const TfLiteOpaqueContext* context) {
  return ToContext(context)->recommended_num_threads;
}

TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context, TfLiteType type,
                                              size_t* bytes) {
  const int bits = fuselite::IsKnownDataType(static_cast<int>(type))
                       ? fuselite::BitWidth(static_cast<fuselite::DataType>(type))
                       : 0;
  if (bits < 8) {
    TfLiteOpaqueContextReportError(context, "type %d has no size in bytes", static_cast<int>(type));
    return kTfLiteError;
  }
  *bytes = static_cast<size_t>(bits) / 8;
  return kTfLiteOk;
}

}  // extern "C"
