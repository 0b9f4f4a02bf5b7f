// TfLiteOperator: an operator's name and functions.
#include <cstdlib>
#include <cstring>
#include <new>

#include "interpreter/custom/structs.h"

namespace {

using Operator = fuselite::tflite::TfLiteOperator;

Operator* To(TfLiteOperator* op) { return reinterpret_cast<Operator*>(op); }
const Operator* To(const TfLiteOperator* op) { return reinterpret_cast<const Operator*>(op); }

// A function with the types of the global namespace, as the member of the same shape has it.
template <class Member, class Function>
void Set(Member& member, Function function) {
  member = reinterpret_cast<Member>(function);
}

}  // namespace

extern "C" {

TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                     int version, void* user_data) {
  auto* op = new (std::nothrow) Operator{};
  if (op == nullptr) return nullptr;
  op->magic = Operator::kMagic;
  op->builtin_code = builtin_code;
  op->version = version;
  op->custom_name = custom_name != nullptr ? strdup(custom_name) : nullptr;
  op->user_data = user_data;
  return reinterpret_cast<TfLiteOperator*>(op);
}

TfLiteRegistrationExternal* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator builtin_code,
                                                             const char* custom_name, int version) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, nullptr);
}

void TfLiteOperatorDelete(TfLiteOperator* op) {
  if (op == nullptr) return;
  std::free(To(op)->custom_name);
  delete To(op);
}

TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* op) {
  return static_cast<TfLiteBuiltinOperator>(To(op)->builtin_code);
}
const char* TfLiteOperatorGetCustomName(const TfLiteOperator* op) { return To(op)->custom_name; }
int TfLiteOperatorGetVersion(const TfLiteOperator* op) { return To(op)->version; }
void* TfLiteOperatorGetUserData(const TfLiteOperator* op) { return To(op)->user_data; }

void TfLiteOperatorSetInit(TfLiteOperator* op,
                           void* (*init)(TfLiteOpaqueContext*, const char*, size_t)) {
  Set(To(op)->init, init);
}
void TfLiteOperatorSetFree(TfLiteOperator* op, void (*free)(TfLiteOpaqueContext*, void*)) {
  Set(To(op)->free, free);
}
void TfLiteOperatorSetPrepare(TfLiteOperator* op,
                              TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  Set(To(op)->prepare, prepare);
}
void TfLiteOperatorSetInvoke(TfLiteOperator* op,
                             TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  Set(To(op)->invoke, invoke);
}

TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* op,
                                           void* (*init)(void*, TfLiteOpaqueContext*, const char*,
                                                         size_t)) {
  Set(To(op)->init_with_data, init);
  return kTfLiteOk;
}
TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* op,
                                           void (*free)(void*, TfLiteOpaqueContext*, void*)) {
  Set(To(op)->free_with_data, free);
  return kTfLiteOk;
}
TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator* op,
                                              TfLiteStatus (*prepare)(void*, TfLiteOpaqueContext*,
                                                                      TfLiteOpaqueNode*)) {
  Set(To(op)->prepare_with_data, prepare);
  return kTfLiteOk;
}
TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator* op,
                                             TfLiteStatus (*invoke)(void*, TfLiteOpaqueContext*,
                                                                    TfLiteOpaqueNode*)) {
  Set(To(op)->invoke_with_data, invoke);
  return kTfLiteOk;
}
void TfLiteOperatorSetInplaceOperator(TfLiteOperator* op, uint64_t bits) {
  To(op)->inplace_operator = bits;
}

}  // extern "C"
