// Strings by numbers. An operator that only moves, chooses or compares elements gives the same for
// strings as for numbers that are equal where strings are: its kernel for int32 computes it.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

class Subgraph;

// Whether LiteRT's kernel of the operator takes strings, and what it does can be done by numbers.
bool TakesStrings(int builtin_code);

// The strings of one run of an operator.
class StringNumbers {
 public:
  // One number for each string of the tensor, valid as long as this object and the tensor are. The
  // errors are ReadStrings'.
  Result<const int32_t*> Read(const tflite::TfLiteTensor& tensor);
  // Where the numbers of an output go, all 0 until then.
  int32_t* Reserve(int64_t elements);
  // Gives `tensor` the strings of `numbers`, which Read gave, and the shape `dims`.
  Status Write(std::span<const int32_t> numbers, std::span<const int> dims, Subgraph& graph,
               tflite::TfLiteTensor& tensor) const;

 private:
  std::map<std::string_view, int32_t> numbers_;
  std::vector<std::string_view> strings_;
  std::vector<std::vector<int32_t>> lists_;  // whose numbers stay where they are
};

}  // namespace fuselite::interpreter
