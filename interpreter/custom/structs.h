// The structs behind the opaque pointers of fuselite/custom_operators.h: the names there are
// TensorFlow Lite's, in the global namespace; what they point to is what runtime/tflite/abi.h
// declares.
#pragma once

#include "fuselite/custom_operators.h"
#include "runtime/support/is_index.h"
#include "runtime/tflite/abi.h"
#include "runtime/tflite/operator.h"

namespace fuselite::custom {

inline tflite::TfLiteContext* ToContext(TfLiteOpaqueContext* context) {
  return reinterpret_cast<tflite::TfLiteContext*>(context);
}
inline const tflite::TfLiteContext* ToContext(const TfLiteOpaqueContext* context) {
  return reinterpret_cast<const tflite::TfLiteContext*>(context);
}
inline tflite::TfLiteNode* ToNode(TfLiteOpaqueNode* node) {
  return reinterpret_cast<tflite::TfLiteNode*>(node);
}
inline const tflite::TfLiteNode* ToNode(const TfLiteOpaqueNode* node) {
  return reinterpret_cast<const tflite::TfLiteNode*>(node);
}
inline tflite::TfLiteTensor* ToTensor(TfLiteOpaqueTensor* tensor) {
  return reinterpret_cast<tflite::TfLiteTensor*>(tensor);
}
inline const tflite::TfLiteTensor* ToTensor(const TfLiteOpaqueTensor* tensor) {
  return reinterpret_cast<const tflite::TfLiteTensor*>(tensor);
}
inline TfLiteOpaqueTensor* FromTensor(tflite::TfLiteTensor* tensor) {
  return reinterpret_cast<TfLiteOpaqueTensor*>(tensor);
}
inline TfLiteStatus FromStatus(tflite::TfLiteStatus status) {
  return static_cast<TfLiteStatus>(status);
}
// Null where there is no such tensor.
inline tflite::TfLiteTensor* TensorAt(const tflite::TfLiteContext& context, int index) {
  const bool there = IsIndex(index, context.tensors_size);
  return there ? &context.tensors[index] : nullptr;
}

}  // namespace fuselite::custom
