// Operator options between the file and fuselite's params structs, generic over the operators'
// field tables.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <optional>
#include <span>

#include "kernels/fields.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite::interpreter {

// The file numbers its element types in its own way; nullopt where DataType does not have the type.
std::optional<DataType> DataTypeFromSchema(int schema_type);
// -1 where the file has no such type.
int DataTypeToSchema(DataType type);

// Reads a verified options table (null: all defaults) into `params`. Fails on values out of range
// and on lists too long.
Status ReadOptions(std::span<const kernels::Field> fields, const flatbuffers::Table* table,
                   void* params);

// Writes `params` as an options table; fields at their defaults are left out, as flatc's own code
// does.
flatbuffers::Offset<void> WriteOptions(std::span<const kernels::Field> fields, const void* params,
                                       flatbuffers::FlatBufferBuilder& builder);

}  // namespace fuselite::interpreter
