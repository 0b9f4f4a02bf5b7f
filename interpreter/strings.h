// String tensors: a table of int32 numbers (how many strings, then where each begins, then where
// the last one ends, counted from the table's beginning), and the characters behind it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

class Subgraph;

// The strings of a table of `count`; kInvalidArgument where it is at odds with itself or its size.
Result<std::vector<std::string_view>> ReadStringTable(std::span<const std::byte> table,
                                                      int64_t count);

// The strings of a tensor, as many as its shape says; they live in its memory.
Result<std::vector<std::string_view>> ReadStrings(const tflite::TfLiteTensor& tensor);

// The tensor gets these strings, the shape, and memory of its own that fits.
Status WriteStrings(Subgraph& graph, tflite::TfLiteTensor& tensor,
                    std::span<const std::string> strings, std::span<const int> dims);

}  // namespace fuselite::interpreter
