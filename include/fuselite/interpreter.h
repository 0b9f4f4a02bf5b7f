/* Running .tflite models without LiteRT: the C interface of libfuselite.so.
 *
 * For C++ there is fuselite/fuselite.hpp.
 *
 * Functions that can fail return a FuseliteStatus or a null pointer; the reason is then one line in
 * FuseliteLastError(), of the calling thread. Handles are not locked: one thread at a time may use
 * an interpreter, but a model may be shared, and FuseliteInterpreterCancel is for any thread. */
#ifndef FUSELITE_INTERPRETER_H_
#define FUSELITE_INTERPRETER_H_

/* NOLINTBEGIN(modernize-deprecated-headers,modernize-use-using): this is C. */
#include <stddef.h>
#include <stdint.h>

#include "fuselite/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum FuseliteStatus {
  kFuseliteOk = 0,
  kFuseliteInvalidArgument = 1,
  kFuseliteUnsupported = 2,
  kFuseliteDynamicShape = 3,
  kFuseliteNotFound = 4,
  kFuseliteOutOfMemory = 5,
  kFuseliteIo = 6,
  kFuseliteCancelled = 7,
  kFuseliteDeadlineExceeded = 8,
  kFuseliteInternal = 9,
  kFuseliteOverBudget = 10 /* beyond max_memory or max_multiply_adds */
} FuseliteStatus;

/* Numbered as TfLiteType. */
typedef enum FuseliteType {
  kFuseliteNoType = 0,
  kFuseliteFloat32 = 1,
  kFuseliteInt32 = 2,
  kFuseliteUInt8 = 3,
  kFuseliteInt64 = 4,
  kFuseliteString = 5,
  kFuseliteBool = 6,
  kFuseliteInt16 = 7,
  kFuseliteComplex64 = 8,
  kFuseliteInt8 = 9,
  kFuseliteFloat16 = 10,
  kFuseliteFloat64 = 11,
  kFuseliteComplex128 = 12,
  kFuseliteUInt64 = 13,
  kFuseliteResource = 14,
  kFuseliteVariant = 15,
  kFuseliteUInt32 = 16,
  kFuseliteUInt16 = 17,
  kFuseliteInt4 = 18,
  kFuseliteBFloat16 = 19,
  kFuseliteInt2 = 20,
  kFuseliteUInt4 = 21
} FuseliteType;
/* "float32", "int8", ...; "none" for what is no type. */
FUSELITE_EXPORT const char* FuseliteTypeName(FuseliteType type);

struct TfLiteOperator;
typedef struct FuseliteModel FuseliteModel;
typedef struct FuseliteInterpreter FuseliteInterpreter;

/* The last error of the calling thread; "" where there was none. Valid until its next failing call.
 */
FUSELITE_EXPORT const char* FuseliteLastError(void);
FUSELITE_EXPORT FuseliteStatus FuseliteLastStatus(void);

/* The file is mapped. Null where it cannot be read or is no valid model. */
FUSELITE_EXPORT FuseliteModel* FuseliteModelLoadFile(const char* path);
/* The bytes are copied. */
FUSELITE_EXPORT FuseliteModel* FuseliteModelLoadMemory(const void* data, size_t size);
/* Interpreters of the model may live on. */
FUSELITE_EXPORT void FuseliteModelDelete(FuseliteModel* model);
FUSELITE_EXPORT size_t FuseliteModelSignatureCount(const FuseliteModel* model);
/* Null where there is no such signature. */
FUSELITE_EXPORT const char* FuseliteModelSignatureKey(const FuseliteModel* model, size_t index);

/* The names that a signature gives to its inputs and outputs. Null beyond the last one. */
FUSELITE_EXPORT const char* FuseliteModelSignatureInputName(const FuseliteModel* model,
                                                            size_t signature, size_t i);
FUSELITE_EXPORT const char* FuseliteModelSignatureOutputName(const FuseliteModel* model,
                                                             size_t signature, size_t i);

/* What a future version adds has a zero that means today's behaviour. Begin with
 * FuseliteInterpreterOptionsDefault(). */
typedef struct FuseliteInterpreterOptions {
  size_t struct_size;       /* sizeof(FuseliteInterpreterOptions) */
  int32_t num_threads;      /* what delegates are told; 0: no wish */
  int32_t preserve_tensors; /* not 0: every value is kept until the next invoke */
  const char* signature;    /* key of the signature to run; null: the model's first subgraph */
  /* Operators of the application (fuselite/custom_operators.h), which must outlive the interpreter.
   * The list is copied; an operator replaces a builtin one of its code. */
  const struct TfLiteOperator* const* operators;
  size_t operator_count;
  /* What is beyond these is refused with kFuseliteOverBudget when allocating, or by the invoke that
   * learns of it: bytes of the values and scratch of a subgraph, multiply-adds of one of its runs.
   * 0: no limit. */
  double max_memory;
  double max_multiply_adds;
} FuseliteInterpreterOptions;
FUSELITE_EXPORT FuseliteInterpreterOptions FuseliteInterpreterOptionsDefault(void);

/* `options` may be null. Fails with kFuseliteUnsupported naming the operators that are not
 * implemented. */
FUSELITE_EXPORT FuseliteInterpreter* FuseliteInterpreterCreate(
    const FuseliteModel* model, const FuseliteInterpreterOptions* options);
FUSELITE_EXPORT void FuseliteInterpreterDelete(FuseliteInterpreter* interpreter);

/* A `struct TfLiteDelegate*`, from FuseliteDelegateCreate() (fuselite/delegate.h) or another
 * delegate's library, which must outlive the interpreter. Where it fails, the model runs as if no
 * delegate had been applied. */
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterApplyDelegate(FuseliteInterpreter* interpreter,
                                                                void* delegate);

/* The tensors of the subgraph that runs, counted by their indices in the file. */
FUSELITE_EXPORT size_t FuseliteInterpreterInputCount(const FuseliteInterpreter* interpreter);
FUSELITE_EXPORT size_t FuseliteInterpreterOutputCount(const FuseliteInterpreter* interpreter);
FUSELITE_EXPORT size_t FuseliteInterpreterTensorCount(const FuseliteInterpreter* interpreter);

/* Indices of tensors: of the i-th input and output, by a tensor's own name, and by the name that a
 * signature gives it (`signature` null: the options' one, else the first of the first subgraph).
 * -1 where there is none, or where the signature is of another subgraph than the one that runs. */
FUSELITE_EXPORT int32_t FuseliteInterpreterInput(const FuseliteInterpreter* interpreter, size_t i);
FUSELITE_EXPORT int32_t FuseliteInterpreterOutput(const FuseliteInterpreter* interpreter, size_t i);
FUSELITE_EXPORT int32_t FuseliteInterpreterFindTensor(const FuseliteInterpreter* interpreter,
                                                      const char* name);
FUSELITE_EXPORT int32_t FuseliteInterpreterSignatureInput(const FuseliteInterpreter* interpreter,
                                                          const char* signature, const char* name);
FUSELITE_EXPORT int32_t FuseliteInterpreterSignatureOutput(const FuseliteInterpreter* interpreter,
                                                           const char* signature, const char* name);

/* No tensor has more dimensions. */
enum { kFuseliteMaxRank = 16 };

/* What a tensor is now. Pointers are valid until the next call that resizes, allocates, applies a
 * delegate or invokes. */
typedef struct FuseliteTensor {
  FuseliteType type;
  int32_t rank;
  int32_t dims[kFuseliteMaxRank];
  float scale; /* 0: not quantized, or per channel: see `scales` */
  int32_t zero_point;
  const char* name;
  void* data; /* null before memory is allocated, and where a delegate keeps the value */
  size_t bytes;
  /* Per-channel quantization along `quantized_dimension`; of the last tensor that was asked for. */
  size_t scale_count;
  const float* scales;
  const int32_t* zero_points;
  int32_t quantized_dimension;
  /* As `dims`, with -1 where a dimension may be resized. */
  int32_t dims_signature[kFuseliteMaxRank];
  int32_t is_variable; /* not 0: it keeps its value from one invoke to the next */
  int32_t is_constant; /* not 0: it is part of the model */
} FuseliteTensor;
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterTensor(FuseliteInterpreter* interpreter,
                                                         int32_t tensor, FuseliteTensor* out);

/* `i` counts the inputs. Memory must be allocated again before the next invoke. */
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterResizeInput(FuseliteInterpreter* interpreter,
                                                              size_t i, const int32_t* dims,
                                                              size_t rank);
/* Prepares operators and takes memory for the inputs' shapes: before the first invoke, and after
 * each resize. Variables begin anew, and inputs are to be written again. Where no shape changed
 * since the last call nothing is done, and variables and inputs keep their values. */
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterAllocate(FuseliteInterpreter* interpreter);
/* Runs the model once, on the calling thread and its helpers; returns when the outputs are there.
 */
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterInvoke(FuseliteInterpreter* interpreter);
/* Ends the invoke that is under way, or else the next one, with kFuseliteCancelled at the next
 * operator. A delegate's partition is one: FuseliteDelegateCancel() ends it at its next step. */
FUSELITE_EXPORT void FuseliteInterpreterCancel(FuseliteInterpreter* interpreter);
/* Sets variable tensors to what they begin with. Resource variables (VAR_HANDLE) keep their values,
 * as in LiteRT. */
FUSELITE_EXPORT void FuseliteInterpreterResetVariables(FuseliteInterpreter* interpreter);

/* Copies to the i-th input and from the i-th output. `size` must be the tensor's bytes, which those
 * of strings are not before they are copied in: as many int32 as there are strings and two more
 * (their number, where each begins, where the last one ends), then their characters. */
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterCopyIn(FuseliteInterpreter* interpreter, size_t i,
                                                         const void* data, size_t size);
FUSELITE_EXPORT FuseliteStatus FuseliteInterpreterCopyOut(FuseliteInterpreter* interpreter,
                                                          size_t i, void* data, size_t size);

/* One node's time in one invoke. */
typedef struct FuseliteProfileEvent {
  int32_t subgraph;
  int32_t node;
  const char* name; /* valid until the next call that takes events */
  int64_t start_ns; /* of the monotonic clock */
  int64_t duration_ns;
} FuseliteProfileEvent;
FUSELITE_EXPORT void FuseliteInterpreterSetProfiling(FuseliteInterpreter* interpreter, int32_t on);
/* Takes up to `capacity` events, oldest first; the number taken. The rest wait for the next call.
 */
FUSELITE_EXPORT size_t FuseliteInterpreterTakeEvents(FuseliteInterpreter* interpreter,
                                                     FuseliteProfileEvent* events, size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* NOLINTEND(modernize-deprecated-headers,modernize-use-using) */

#endif /* FUSELITE_INTERPRETER_H_ */
