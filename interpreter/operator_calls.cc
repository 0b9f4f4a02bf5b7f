#include "interpreter/operator_calls.h"

#include "runtime/tflite/operator.h"

namespace fuselite::interpreter {
namespace {

using tflite::TfLiteContext;
using tflite::TfLiteNode;
using tflite::TfLiteOpaqueContext;
using tflite::TfLiteOpaqueNode;
using tflite::TfLiteOperator;
using tflite::TfLiteRegistration;
using tflite::TfLiteStatus;

// Null for a plain registration, and for an operator of another maker.
const TfLiteOperator* OpaqueOf(const TfLiteRegistration& registration) {
  const TfLiteOperator* op = registration.registration_external;
  return op != nullptr && op->magic == TfLiteOperator::kMagic ? op : nullptr;
}

// The opaque structs are the plain ones.
TfLiteOpaqueContext* Opaque(TfLiteContext* context) {
  return reinterpret_cast<TfLiteOpaqueContext*>(context);
}
TfLiteOpaqueNode* Opaque(TfLiteNode* node) { return reinterpret_cast<TfLiteOpaqueNode*>(node); }

}  // namespace

void* CallInit(const TfLiteRegistration& registration, TfLiteContext* context, const char* buffer,
               size_t length) {
  if (registration.init != nullptr) return registration.init(context, buffer, length);
  const TfLiteOperator* op = OpaqueOf(registration);
  if (op == nullptr) return nullptr;
  if (op->init_with_data != nullptr) {
    return op->init_with_data(op->user_data, Opaque(context), buffer, length);
  }
  return op->init != nullptr ? op->init(Opaque(context), buffer, length) : nullptr;
}

void CallFree(const TfLiteRegistration& registration, TfLiteContext* context, void* user_data) {
  if (registration.free != nullptr) return registration.free(context, user_data);
  const TfLiteOperator* op = OpaqueOf(registration);
  if (op == nullptr) return;
  if (op->free_with_data != nullptr) {
    op->free_with_data(op->user_data, Opaque(context), user_data);
  } else if (op->free != nullptr) {
    op->free(Opaque(context), user_data);
  }
}

bool HasPrepare(const TfLiteRegistration& registration) {
  if (registration.prepare != nullptr) return true;
  const TfLiteOperator* op = OpaqueOf(registration);
  return op != nullptr && (op->prepare_with_data != nullptr || op->prepare != nullptr);
}

bool HasInvoke(const TfLiteRegistration& registration) {
  if (registration.invoke != nullptr) return true;
  const TfLiteOperator* op = OpaqueOf(registration);
  return op != nullptr && (op->invoke_with_data != nullptr || op->invoke != nullptr);
}

TfLiteStatus CallPrepare(const TfLiteRegistration& registration, TfLiteContext* context,
                         TfLiteNode* node) {
  if (registration.prepare != nullptr) return registration.prepare(context, node);
  const TfLiteOperator* op = OpaqueOf(registration);
  if (op->prepare_with_data != nullptr) {
    return op->prepare_with_data(op->user_data, Opaque(context), Opaque(node));
  }
  return op->prepare(Opaque(context), Opaque(node));
}

TfLiteStatus CallInvoke(const TfLiteRegistration& registration, TfLiteContext* context,
                        TfLiteNode* node) {
  if (registration.invoke != nullptr) return registration.invoke(context, node);
  const TfLiteOperator* op = OpaqueOf(registration);
  if (op->invoke_with_data != nullptr) {
    return op->invoke_with_data(op->user_data, Opaque(context), Opaque(node));
  }
  return op->invoke(Opaque(context), Opaque(node));
}

}  // namespace fuselite::interpreter
