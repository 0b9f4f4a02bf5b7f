#include "interpreter/strings.h"

#include <cstring>

#include "interpreter/subgraph.h"

namespace fuselite::interpreter {
namespace {

constexpr size_t kWord = sizeof(int32_t);

int32_t Word(std::span<const std::byte> table, int64_t i) {
  int32_t value;
  std::memcpy(&value, table.data() + static_cast<size_t>(i) * kWord, kWord);
  return value;
}

}  // namespace

Result<std::vector<std::string_view>> ReadStringTable(std::span<const std::byte> table,
                                                      int64_t count) {
  const auto words = static_cast<int64_t>(table.size() / kWord);
  if (words < 1 || Word(table, 0) != count) {
    return InvalidArgument("its string table does not have ", count, " entries");
  }
  if (words < count + 2) return InvalidArgument("its string table is cut off");
  std::vector<std::string_view> strings;
  int64_t begin = static_cast<int64_t>(kWord) * (count + 2);
  if (Word(table, 1) < begin) return InvalidArgument("its strings begin within their table");
  begin = Word(table, 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = Word(table, i + 2);
    if (end < begin || end > static_cast<int64_t>(table.size())) {
      return InvalidArgument("its string table has the offset ", end, " out of order");
    }
    strings.emplace_back(reinterpret_cast<const char*>(table.data()) + begin, end - begin);
    begin = end;
  }
  return strings;
}

Result<std::vector<std::string_view>> ReadStrings(const tflite::TfLiteTensor& tensor) {
  if (tensor.type != tflite::kTfLiteString) return InvalidArgument("an operand is no string");
  const auto shape =
      Shape::FromDims(tflite::Elements(static_cast<const tflite::TfLiteIntArray*>(tensor.dims)));
  if (!shape) return InvalidArgument("an operand has no shape");
  // One that nobody has written yet has no bytes.
  if (tensor.bytes == 0 && shape->elements() == 0) return std::vector<std::string_view>();
  return ReadStringTable(
      std::span(reinterpret_cast<const std::byte*>(tensor.data.raw_const), tensor.bytes),
      shape->elements());
}

Status WriteStrings(Subgraph& graph, tflite::TfLiteTensor& tensor,
                    std::span<const std::string> strings, std::span<const int> dims) {
  size_t bytes = kWord * (strings.size() + 2);
  std::vector<int32_t> table{static_cast<int32_t>(strings.size()), static_cast<int32_t>(bytes)};
  for (const std::string& string : strings) {
    bytes += string.size();
    if (bytes > INT32_MAX) return OutOfMemory("strings of more than 2 GiB");
    table.push_back(static_cast<int32_t>(bytes));
  }
  FUSELITE_RETURN_IF_ERROR(graph.ResizeStrings(tensor, dims, bytes));
  std::memcpy(tensor.data.raw, table.data(), table.size() * kWord);
  for (size_t i = 0; i < strings.size(); ++i) {
    std::memcpy(tensor.data.raw + table[i + 1], strings[i].data(), strings[i].size());
  }
  return Status();
}

}  // namespace fuselite::interpreter
