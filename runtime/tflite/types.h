#pragma once

#include <cstdint>

// The small C types of TensorFlow Lite's delegate interface: status, element types, arrays,
// quantization, sparsity. See tflite_abi.h for what they are for and for the rules on versions.

namespace fuselite::tflite {

struct TfLiteDelegate;

// Enumerations have a fixed underlying type here: a newer host may send values that are not listed.
enum TfLiteStatus : int32_t {
  kTfLiteOk = 0,
  kTfLiteError = 1,
  kTfLiteDelegateError = 2,
  kTfLiteApplicationError = 3,
  kTfLiteDelegateDataNotFound = 4,
  kTfLiteDelegateDataWriteError = 5,
  kTfLiteDelegateDataReadError = 6,
  kTfLiteUnresolvedOps = 7,
  kTfLiteCancelled = 8,
  kTfLiteOutputShapeNotKnown = 9,  // LiteRT 1.
};

// The numbering differs from the file format's TensorType.
enum TfLiteType : int32_t {
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
  kTfLiteInt2 = 20,
  kTfLiteUInt4 = 21,
  kTfLiteFloat8E4M3FN = 22,
  kTfLiteFloat8E5M2 = 23,
};

// The index that stands for an optional input left out. (Named otherwise than the original, which
// is a macro.)
inline constexpr int kOptionalTensor = -1;

// Arrays are one malloc'ed block: the length, then the elements. Whoever takes ownership calls
// free().
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
struct TfLiteIntArray {
  int size;
  int data[];
};

struct TfLiteFloatArray {
  int size;
  float data[];
};
#pragma GCC diagnostic pop

struct TfLiteComplex64 {
  float re, im;
};

struct TfLiteComplex128 {
  double re, im;
};

struct TfLiteFloat16 {
  uint16_t data;
};

struct TfLiteBFloat16 {
  uint16_t data;
};

// The scale and zero point of a whole tensor: real = scale * (quantized - zero_point). Scale 0:
// none.
struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};

enum TfLiteQuantizationType : int32_t {
  kTfLiteNoQuantization = 0,
  kTfLiteAffineQuantization = 1,
  kTfLiteBlockwiseQuantization = 2,  // LiteRT 1.
  kTfLiteMultiAxisQuantization = 3,  // LiteRT 2.
};

struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;  // The struct that `type` names, or null.
};

// One scale and zero point, or one for each index of dimension `quantized_dimension`. `zero_point`
// may have one element beside many scales.
struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
};

// Scales and zero points that are tensors themselves: indices into the context's tensors.
struct TfLiteBlockwiseQuantization {
  int32_t scale;
  int32_t zero_point;
  int32_t blocksize;
  int32_t quantized_dimension;
};

struct TfLiteMultiAxisQuantization {
  int32_t scales;
  int32_t zero_points;
  int32_t blocksize;
  TfLiteIntArray* quantized_dimensions;
};

union TfLitePtrUnion {
  int32_t* i32;
  uint32_t* u32;
  int64_t* i64;
  uint64_t* u64;
  float* f;
  TfLiteFloat16* f16;
  TfLiteBFloat16* bf16;
  double* f64;
  char* raw;
  const char* raw_const;
  uint8_t* uint8;
  bool* b;
  int16_t* i16;
  uint16_t* ui16;
  TfLiteComplex64* c64;
  TfLiteComplex128* c128;
  int8_t* int8;
  void* data;
};

// Where a tensor's bytes live.
enum TfLiteAllocationType : int32_t {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo,             // The model's bytes: a constant.
  kTfLiteArenaRw,            // The arena, reused by other tensors.
  kTfLiteArenaRwPersistent,  // The arena, kept between invokes: variables.
  kTfLiteDynamic,            // The heap; shape and address only known at invoke.
  kTfLitePersistentRo,       // The heap; computed once during prepare, constant from then on.
  kTfLiteCustom,             // The application's memory.
  kTfLiteVariantObject,      // A C++ object of the host; since 2023.
  kTfLiteNonCpu,             // LiteRT 2.
};

using TfLiteBufferHandle = int;
inline constexpr TfLiteBufferHandle kTfLiteNullBufferHandle = -1;

enum TfLiteDimensionType : int32_t {
  kTfLiteDimDense = 0,
  kTfLiteDimSparseCSR = 1,
};

struct TfLiteDimensionMetadata {
  TfLiteDimensionType format;
  int dense_size;
  TfLiteIntArray* array_segments;
  TfLiteIntArray* array_indices;
};

struct TfLiteSparsity {
  TfLiteIntArray* traversal_order;
  TfLiteIntArray* block_map;
  TfLiteDimensionMetadata* dim_metadata;
  int dim_metadata_size;
};

struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteType type;
};

}  // namespace fuselite::tflite
