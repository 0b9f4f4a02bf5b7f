// NumPy's .npy files: how the tools take inputs and give outputs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite::tools {

// A dense tensor in C order.
struct Array {
  DataType type = DataType::kNone;
  Shape shape;
  std::vector<std::byte> bytes;
};

// Reads format versions 1 to 3, little-endian, C order, of the types that tensors have. Errors name
// the file.
Result<Array> ReadNpy(const std::string& path);

// Whether NumPy has the type; it lacks int4, bfloat16 and string.
bool HasNpyType(DataType type);

// Writes version 1. Types without HasNpyType() are refused.
Status WriteNpy(const std::string& path, const Array& array);

}  // namespace fuselite::tools
