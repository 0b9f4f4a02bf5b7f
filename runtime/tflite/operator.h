#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tflite/types.h"

// The object behind TensorFlow Lite's opaque operators (TfLiteOperator, formerly
// TfLiteRegistrationExternal). Its layout is its maker's affair; this one is shared by
// libfuselite_custom_operators.so, which makes such objects, and fuselite's interpreter, which runs
// them.

namespace fuselite::tflite {

struct TfLiteOpaqueContext;
struct TfLiteOpaqueNode;

// A function of the operator in its two forms: with the user's data in front, or without.
struct TfLiteOperator {
  static constexpr uint64_t kMagic = 0x66757365'6f707231;  // "fuseopr1"
  uint64_t magic;  // other objects of this name, of TensorFlow Lite itself, do not have it
  int32_t builtin_code;
  int32_t version;
  char* custom_name;  // malloc'ed; null for a builtin operator
  void* user_data;
  uint64_t inplace_operator;  // TfLiteInPlaceOp bits
  void* (*init)(TfLiteOpaqueContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteOpaqueContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);
  TfLiteStatus (*invoke)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);
  void* (*init_with_data)(void* user_data, TfLiteOpaqueContext* context, const char* buffer,
                          size_t length);
  void (*free_with_data)(void* user_data, TfLiteOpaqueContext* context, void* buffer);
  TfLiteStatus (*prepare_with_data)(void* user_data, TfLiteOpaqueContext* context,
                                    TfLiteOpaqueNode* node);
  TfLiteStatus (*invoke_with_data)(void* user_data, TfLiteOpaqueContext* context,
                                   TfLiteOpaqueNode* node);
};

}  // namespace fuselite::tflite
