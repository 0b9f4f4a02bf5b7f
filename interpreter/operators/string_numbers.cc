#include "interpreter/operators/string_numbers.h"

#include <algorithm>

#include "interpreter/strings.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::interpreter {

bool TakesStrings(int builtin_code) {
  static constexpr int kOperators[] = {
      tflite::kTfLiteBuiltinEqual,    tflite::kTfLiteBuiltinExpandDims,
      tflite::kTfLiteBuiltinFill,     tflite::kTfLiteBuiltinGather,
      tflite::kTfLiteBuiltinGatherNd, tflite::kTfLiteBuiltinNotEqual,
      tflite::kTfLiteBuiltinReshape,  tflite::kTfLiteBuiltinSlice,
      tflite::kTfLiteBuiltinSqueeze,  tflite::kTfLiteBuiltinStridedSlice,
      tflite::kTfLiteBuiltinTile,
  };
  return std::ranges::find(kOperators, builtin_code) != std::end(kOperators);
}

Result<const int32_t*> StringNumbers::Read(const tflite::TfLiteTensor& tensor) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<std::string_view> strings, ReadStrings(tensor));
  std::vector<int32_t>& list = lists_.emplace_back();
  for (std::string_view string : strings) {
    const auto next = static_cast<int32_t>(strings_.size());
    const auto [found, added] = numbers_.try_emplace(string, next);
    if (added) strings_.push_back(string);
    list.push_back(found->second);
  }
  return static_cast<const int32_t*>(list.data());
}

int32_t* StringNumbers::Reserve(int64_t elements) {
  return lists_.emplace_back(static_cast<size_t>(elements)).data();
}

Status StringNumbers::Write(std::span<const int32_t> numbers, std::span<const int> dims,
                            Subgraph& graph, tflite::TfLiteTensor& tensor) const {
  std::vector<std::string> strings;
  strings.reserve(numbers.size());
  for (int32_t number : numbers) {
    const auto i = static_cast<size_t>(number);
    if (i >= strings_.size()) return Internal("a number that stands for no string");
    strings.emplace_back(strings_[i]);
  }
  return WriteStrings(graph, tensor, strings, dims);
}

}  // namespace fuselite::interpreter
