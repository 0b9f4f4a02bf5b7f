// Calling the functions of a registration, in whichever of its two forms it has them: plain
// function pointers, or an opaque operator (runtime/tflite/operator.h).
#pragma once

#include <cstddef>

#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

// Null where there is no such function.
void* CallInit(const tflite::TfLiteRegistration& registration, tflite::TfLiteContext* context,
               const char* buffer, size_t length);
void CallFree(const tflite::TfLiteRegistration& registration, tflite::TfLiteContext* context,
              void* user_data);

bool HasPrepare(const tflite::TfLiteRegistration& registration);
bool HasInvoke(const tflite::TfLiteRegistration& registration);
// Preconditions: HasPrepare(), HasInvoke().
tflite::TfLiteStatus CallPrepare(const tflite::TfLiteRegistration& registration,
                                 tflite::TfLiteContext* context, tflite::TfLiteNode* node);
tflite::TfLiteStatus CallInvoke(const tflite::TfLiteRegistration& registration,
                                tflite::TfLiteContext* context, tflite::TfLiteNode* node);

}  // namespace fuselite::interpreter
