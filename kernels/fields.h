// Field tables: an operator's parameters, described once for everybody who reads or writes them
// (the model loader, the delegate's import, the model writer, validators, docs/operators.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/support/status.h"

namespace fuselite::kernels {

// How a field is stored in fuselite's params struct, in the file's options table and in TFLite's
// struct.
enum class FieldKind : uint8_t {
  kInt32,  // int32_t; int in the struct
  kInt64,
  kFloat,
  kBool,        // bool; uint8 in the file
  kActivation,  // Activation; int8 in the file, an int enum in the struct
  kPadding,     // Padding; int8 in the file, where SAME is 0; the struct has it at 1
  kDataType,    // DataType; int8 in the file, numbered as the schema's TensorType
  kEnum8,       // int32_t; int8 in the file, an int enum with the same numbers in the struct
  kIntList,     // IntList; [int] in the file; int[8] and an int count in the struct
  kLongList,    // IntList; [long] in the file; int64_t[8] and an int count in the struct
  kLongPairs,   // PairList; [long] in the file; int64_t[16] in the struct
  kFloatList,   // FloatList; [float] in the file; a pointer and an int count in the struct
};

// Values as in the schema and in TfLiteFusedActivation.
enum class Activation : int32_t { kNone, kRelu, kReluN1To1, kRelu6, kTanh, kSignBit };
// Values as in the schema. TfLitePadding is one more.
enum class Padding : int32_t { kSame, kValid };

struct IntList {
  static constexpr int kMax = 8;
  int32_t values[kMax];
  int32_t count;
};

struct PairList {
  static constexpr int kMax = 16;
  int32_t values[kMax];
  int32_t count;
};
// The model's bytes, alive as long as whatever was built from the parameters.
struct FloatList {
  const float* values;
  int64_t count;
};

struct Field {
  std::string_view name;  // as in the schema
  FieldKind kind;
  uint16_t id;                // of the field in the options table of the file
  uint16_t offset;            // in our params struct
  int16_t struct_offset;      // in TFLite's C struct; -1 where it is not there
  int16_t count_offset = -1;  // lists: of the count in TFLite's C struct; -1: all entries count
  int16_t since_version = 1;  // struct field is read only from this version of the operator on
  double default_value = 0;   // the schema's default
  int32_t choices = 2;        // kPadding: so many; operators have other choices in its form
};

// Fills `params` with the defaults of the table.
void SetDefaults(std::span<const Field> fields, void* params);

// Reads TFLite's C struct. A null `builtin_data` gives the defaults. Fails on enum values out of
// range and on lists longer than IntList::kMax.
Status ImportParams(std::span<const Field> fields, const void* builtin_data, int version,
                    void* params);

// Writes TFLite's C struct, whose bytes at `builtin_data` are zero.
void ExportParams(std::span<const Field> fields, const void* params, void* builtin_data);

}  // namespace fuselite::kernels
