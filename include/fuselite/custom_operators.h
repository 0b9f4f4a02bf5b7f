/* Operators of your own in fuselite's interpreter, through TensorFlow Lite's opaque C interface: an
 * operator written against tensorflow/lite/c/c_api_opaque.h compiles against this header instead,
 * and runs from libfuselite_custom_operators.so.
 *
 *   TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", 1, NULL);
 *   TfLiteOperatorSetPrepare(op, AtanPrepare);
 *   TfLiteOperatorSetInvoke(op, AtanInvoke);
 *   const struct TfLiteOperator* operators[] = {op};
 *   FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
 *   options.operators = operators;
 *   options.operator_count = 1;
 *
 * docs/custom-operators.md walks through it. The names are TensorFlow Lite's: a program uses either
 * this header and library or TensorFlow Lite's own, never both.
 *
 * Contexts, nodes and tensors are the interpreter's; pointers to them are valid until the function
 * that received them returns. What a function returns as `const` or by pointer into them is not the
 * caller's to free. */
#ifndef FUSELITE_CUSTOM_OPERATORS_H_
#define FUSELITE_CUSTOM_OPERATORS_H_

/* NOLINTBEGIN(modernize-*,readability-identifier-naming): this is C, with another project's names.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuselite/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TfLiteStatus {
  kTfLiteOk = 0,
  kTfLiteError = 1,
  kTfLiteDelegateError = 2,
  kTfLiteApplicationError = 3,
  kTfLiteUnresolvedOps = 7,
  kTfLiteCancelled = 8,
} TfLiteStatus;

typedef enum TfLiteType {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteComplex64 = 8,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteComplex128 = 12,
  kTfLiteUInt64 = 13,
  kTfLiteResource = 14,
  kTfLiteVariant = 15,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
  kTfLiteInt4 = 18,
  kTfLiteBFloat16 = 19,
} TfLiteType;

typedef enum TfLiteAllocationType {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo = 1,
  kTfLiteArenaRw = 2,
  kTfLiteArenaRwPersistent = 3,
  kTfLiteDynamic = 4,
  kTfLitePersistentRo = 5,
  kTfLiteCustom = 6,
} TfLiteAllocationType;

/* Of the codes of builtin operators only the one that stands for custom operators is needed here.
 */
typedef enum TfLiteBuiltinOperator {
  kTfLiteBuiltinCustom = 32,
} TfLiteBuiltinOperator;

/* One malloc'ed block: the length, then the elements. */
typedef struct TfLiteIntArray {
  int size;
#if defined(__cplusplus) && defined(__GNUC__)
  __extension__ int data[];
#else
  int data[];
#endif
} TfLiteIntArray;

typedef struct TfLiteQuantizationParams {
  float scale; /* 0: not quantized */
  int32_t zero_point;
} TfLiteQuantizationParams;

typedef struct TfLiteOperator TfLiteOperator;
typedef struct TfLiteOpaqueContext TfLiteOpaqueContext;
typedef struct TfLiteOpaqueNode TfLiteOpaqueNode;
typedef struct TfLiteOpaqueTensor TfLiteOpaqueTensor;
typedef struct TfLiteOpaqueTensorBuilder TfLiteOpaqueTensorBuilder;

/* Null where memory is short. */
FUSELITE_EXPORT TfLiteIntArray* TfLiteIntArrayCreate(int size);
FUSELITE_EXPORT TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* source);
FUSELITE_EXPORT int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
FUSELITE_EXPORT void TfLiteIntArrayFree(TfLiteIntArray* array);

/* --- Operators ---
 * An operator must outlive the interpreters that were made with it. `user_data` is handed to the
 * functions that were set with data. Prepare is called whenever shapes change, Invoke for each run;
 * both are needed. */
FUSELITE_EXPORT TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code,
                                                     const char* custom_name, int version,
                                                     void* user_data);
FUSELITE_EXPORT void TfLiteOperatorDelete(TfLiteOperator* op);
FUSELITE_EXPORT TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* op);
FUSELITE_EXPORT const char* TfLiteOperatorGetCustomName(const TfLiteOperator* op);
FUSELITE_EXPORT int TfLiteOperatorGetVersion(const TfLiteOperator* op);
FUSELITE_EXPORT void* TfLiteOperatorGetUserData(const TfLiteOperator* op);
/* Once for each node, with the operator's options from the file; the result is
 * TfLiteOpaqueNodeGetUserData(). */
FUSELITE_EXPORT void TfLiteOperatorSetInit(TfLiteOperator* op,
                                           void* (*init)(TfLiteOpaqueContext* context,
                                                         const char* buffer, size_t length));
FUSELITE_EXPORT void TfLiteOperatorSetFree(TfLiteOperator* op,
                                           void (*free)(TfLiteOpaqueContext* context, void* data));
FUSELITE_EXPORT void TfLiteOperatorSetPrepare(TfLiteOperator* op,
                                              TfLiteStatus (*prepare)(TfLiteOpaqueContext* context,
                                                                      TfLiteOpaqueNode* node));
FUSELITE_EXPORT void TfLiteOperatorSetInvoke(TfLiteOperator* op,
                                             TfLiteStatus (*invoke)(TfLiteOpaqueContext* context,
                                                                    TfLiteOpaqueNode* node));
FUSELITE_EXPORT TfLiteStatus TfLiteOperatorSetInitWithData(
    TfLiteOperator* op, void* (*init)(void* user_data, TfLiteOpaqueContext* context,
                                      const char* buffer, size_t length));
FUSELITE_EXPORT TfLiteStatus TfLiteOperatorSetFreeWithData(
    TfLiteOperator* op, void (*free)(void* user_data, TfLiteOpaqueContext* context, void* data));
FUSELITE_EXPORT TfLiteStatus TfLiteOperatorSetPrepareWithData(
    TfLiteOperator* op,
    TfLiteStatus (*prepare)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
FUSELITE_EXPORT TfLiteStatus TfLiteOperatorSetInvokeWithData(
    TfLiteOperator* op,
    TfLiteStatus (*invoke)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
FUSELITE_EXPORT void TfLiteOperatorSetInplaceOperator(TfLiteOperator* op, uint64_t bits);

/* The older names of the same. */
typedef TfLiteOperator TfLiteRegistrationExternal;
FUSELITE_EXPORT TfLiteRegistrationExternal* TfLiteRegistrationExternalCreate(
    TfLiteBuiltinOperator builtin_code, const char* custom_name, int version);
#define TfLiteRegistrationExternalDelete TfLiteOperatorDelete
#define TfLiteRegistrationExternalSetInit TfLiteOperatorSetInit
#define TfLiteRegistrationExternalSetFree TfLiteOperatorSetFree
#define TfLiteRegistrationExternalSetPrepare TfLiteOperatorSetPrepare
#define TfLiteRegistrationExternalSetInvoke TfLiteOperatorSetInvoke
#define TfLiteRegistrationExternalGetBuiltInCode TfLiteOperatorGetBuiltInCode
#define TfLiteRegistrationExternalGetCustomName TfLiteOperatorGetCustomName
#define TfLiteRegistrationExternalGetVersion TfLiteOperatorGetVersion

/* --- Nodes --- */
FUSELITE_EXPORT int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node);
FUSELITE_EXPORT int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node);
/* Null beyond the last one, and for an optional input that was left out. */
FUSELITE_EXPORT const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(
    const TfLiteOpaqueContext* context, const TfLiteOpaqueNode* node, int index);
FUSELITE_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context,
                                                              const TfLiteOpaqueNode* node,
                                                              int index);
/* Indices of tensors, -1 for an input left out; -1 also beyond the last one. */
FUSELITE_EXPORT int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int index);
FUSELITE_EXPORT int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int index);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node,
                                                    const int** inputs, int* count);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node,
                                                     const int** outputs, int* count);
FUSELITE_EXPORT void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node);
FUSELITE_EXPORT void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node,
                                                                  const void** data, int* size);
/* Tensors that live during this node's run only; to be set in Prepare. The indices are copied. */
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node,
                                                            const int* temporaries, int count);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node,
                                                         const int** temporaries, int* count);

/* --- Contexts --- */
/* Takes `size` over, also where it fails. In Prepare, or in Invoke for dynamic tensors. */
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                                             TfLiteOpaqueTensor* tensor,
                                                             TfLiteIntArray* size);
FUSELITE_EXPORT void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context,
                                                    const char* format, ...);
FUSELITE_EXPORT void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context,
                                                      const char* format, va_list arguments);
FUSELITE_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(
    const TfLiteOpaqueContext* context, int index);
FUSELITE_EXPORT size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context);
/* -1: the application has no wish. */
FUSELITE_EXPORT int TfLiteOpaqueContextGetNumThreads(const TfLiteOpaqueContext* context);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context,
                                                              TfLiteType type, size_t* bytes);
/* Adds a tensor as `builder` describes it, in Init or Prepare. */
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                                          TfLiteOpaqueTensorBuilder* builder,
                                                          int* new_index);

/* --- Tensors --- */
FUSELITE_EXPORT TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* tensor);
/* -1 where the tensor has no shape yet. */
FUSELITE_EXPORT int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* tensor);
FUSELITE_EXPORT int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* tensor, int32_t index);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* tensor,
                                                                   int32_t* count);
/* -1 where the dimension may change. */
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* tensor,
                                                               int32_t index, int32_t* length);
FUSELITE_EXPORT int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* tensor);
FUSELITE_EXPORT size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* tensor);
/* Null before memory is allocated. */
FUSELITE_EXPORT void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* tensor);
FUSELITE_EXPORT const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* tensor);
FUSELITE_EXPORT TfLiteAllocationType
TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* tensor);
FUSELITE_EXPORT TfLiteQuantizationParams
TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* tensor);
/* `size` must be the tensor's. */
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* tensor,
                                                              const void* data, size_t size);
FUSELITE_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* tensor,
                                                            void* data, size_t size);
/* In Prepare, for an output whose shape only Invoke knows: Invoke then resizes it. */
FUSELITE_EXPORT void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* tensor);

/* What TfLiteOpaqueContextAddTensor makes: without a type it is none, without an allocation type it
 * lives in the arena during one node (kTfLiteArenaRw). Each function returns its builder. */
FUSELITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void);
FUSELITE_EXPORT void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder);
FUSELITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteType type);
/* Not copied: must outlive the interpreter. */
FUSELITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(
    TfLiteOpaqueTensorBuilder* builder, void* data);
FUSELITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteAllocationType allocation_type);
FUSELITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantizationParams params);

/* Return kTfLiteError from the function that they stand in, with a message that names the
 * condition. */
#define TF_LITE_OPAQUE_ENSURE(context, condition)                                            \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      TfLiteOpaqueContextReportError((context), "%s:%d: %s is not true", __FILE__, __LINE__, \
                                     #condition);                                            \
      return kTfLiteError;                                                                   \
    }                                                                                        \
  } while (0)
#define TF_LITE_OPAQUE_ENSURE_EQ(context, a, b)                                           \
  do {                                                                                    \
    if ((a) != (b)) {                                                                     \
      TfLiteOpaqueContextReportError((context), "%s:%d: %s is not %s (%d, %d)", __FILE__, \
                                     __LINE__, #a, #b, (int)(a), (int)(b));               \
      return kTfLiteError;                                                                \
    }                                                                                     \
  } while (0)
#define TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, a, b) TF_LITE_OPAQUE_ENSURE_EQ(context, a, b)
#define TF_LITE_OPAQUE_ENSURE_STATUS(status)                \
  do {                                                      \
    const TfLiteStatus ensured_status = (status);           \
    if (ensured_status != kTfLiteOk) return ensured_status; \
  } while (0)

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */
#endif /* FUSELITE_CUSTOM_OPERATORS_H_ */
