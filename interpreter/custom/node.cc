// TfLiteOpaqueNode: what an operator is applied to.
#include <cstdlib>
#include <span>

#include "interpreter/custom/structs.h"
#include "runtime/support/is_index.h"
#include "runtime/tflite/arrays.h"

namespace {

using fuselite::custom::ToNode;
using fuselite::tflite::Elements;

int At(const fuselite::tflite::TfLiteIntArray* array, int index) {
  const std::span<const int> elements = Elements(array);
  return fuselite::IsIndex(index, elements.size()) ? elements[index] : -1;
}

TfLiteStatus List(const fuselite::tflite::TfLiteIntArray* array, const int** data, int* count) {
  const std::span<const int> elements = Elements(array);
  *data = elements.data();
  *count = static_cast<int>(elements.size());
  return kTfLiteOk;
}

}  // namespace

extern "C" {

int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node) {
  return static_cast<int>(Elements(ToNode(node)->inputs).size());
}
int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node) {
  return static_cast<int>(Elements(ToNode(node)->outputs).size());
}

int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int index) {
  return At(ToNode(node)->inputs, index);
}
int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int index) {
  return At(ToNode(node)->outputs, index);
}

const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* context,
                                                   const TfLiteOpaqueNode* node, int index) {
  return TfLiteOpaqueContextGetOpaqueTensor(context,
                                            TfLiteOpaqueNodeGetInputTensorIndex(node, index));
}
TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context,
                                              const TfLiteOpaqueNode* node, int index) {
  return TfLiteOpaqueContextGetOpaqueTensor(context,
                                            TfLiteOpaqueNodeGetOutputTensorIndex(node, index));
}

TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node, const int** inputs, int* count) {
  return List(ToNode(node)->inputs, inputs, count);
}
TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node, const int** outputs,
                                     int* count) {
  return List(ToNode(node)->outputs, outputs, count);
}
TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node, const int** temporaries,
                                         int* count) {
  return List(ToNode(node)->temporaries, temporaries, count);
}

TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node, const int* temporaries,
                                            int count) {
  if (count < 0 || (temporaries == nullptr && count > 0)) return kTfLiteError;
  auto array = fuselite::tflite::MakeIntArray({temporaries, static_cast<size_t>(count)});
  if (array == nullptr) return kTfLiteError;
  std::free(ToNode(node)->temporaries);
  ToNode(node)->temporaries = array.release();
  return kTfLiteOk;
}

void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node) { return ToNode(node)->user_data; }
void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node) {
  return ToNode(node)->builtin_data;
}
TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node, const void** data,
                                                  int* size) {
  *data = ToNode(node)->custom_initial_data;
  *size = ToNode(node)->custom_initial_data_size;
  return kTfLiteOk;
}

}  // extern "C"
