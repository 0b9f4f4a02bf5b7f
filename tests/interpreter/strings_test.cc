// String tables as files and hosts give them: the number of strings, their offsets, their bytes.
#include "interpreter/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tflite/arrays.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// These words, and then the bytes of `text`.
std::vector<std::byte> Table(const std::vector<int32_t>& words, std::string_view text) {
  const auto head = std::as_bytes(std::span(words)), tail = std::as_bytes(std::span(text));
  std::vector<std::byte> table(head.begin(), head.end());
  table.insert(table.end(), tail.begin(), tail.end());
  return table;
}

std::string ErrorOf(const std::vector<std::byte>& table, int64_t count) {
  const auto strings = ReadStringTable(table, count);
  return strings.ok() ? "read" : std::string(strings.status().message());
}

TEST(StringTable, GivesItsStringsInOrder) {
  const std::vector<std::byte> table = Table({3, 20, 22, 22, 25}, "abcde");
  EXPECT_THAT(*ReadStringTable(table, 3), ElementsAre("ab", "", "cde"));
  const std::vector<std::byte> none = Table({0, 8}, "");
  EXPECT_THAT(*ReadStringTable(none, 0), ElementsAre());
  const std::vector<std::byte> apart = Table({1, 14, 15}, "..a");
  EXPECT_THAT(*ReadStringTable(apart, 1), ElementsAre("a")) << "bytes before the first one";
}

TEST(StringTable, IsRefusedWhereItIsCutOffOrOfAnotherNumber) {
  EXPECT_THAT(ErrorOf({}, 0), HasSubstr("does not have 0 entries"));
  EXPECT_THAT(ErrorOf(Table({2, 16, 17, 18}, "ab"), 1), HasSubstr("does not have 1 entries"));
  EXPECT_THAT(ErrorOf(Table({2, 16, 17}, ""), 2), HasSubstr("is cut off"));
}

TEST(StringTable, IsRefusedWhereOffsetsAreOutOfOrder) {
  EXPECT_THAT(ErrorOf(Table({1, 8, 12}, ""), 1), HasSubstr("begin within their table"));
  EXPECT_THAT(ErrorOf(Table({2, 18, 16, 20}, "abcd"), 2), HasSubstr("offset 16 out of order"));
  EXPECT_THAT(ErrorOf(Table({1, 12, 15}, "ab"), 1), HasSubstr("offset 15 out of order"));
  EXPECT_THAT(ErrorOf(Table({1, 12, -1}, "ab"), 1), HasSubstr("offset -1 out of order"));
}

// As a graph has them: of a type, a shape and bytes.
TEST(StringTensor, IsReadByItsShape) {
  const std::vector<std::byte> table = Table({2, 16, 17, 19}, "abc");
  const auto error = [&](tflite::TfLiteType type, const std::vector<int>& dims, size_t bytes) {
    const tflite::IntArrayPtr shape = tflite::MakeIntArray(dims);
    tflite::TfLiteTensor tensor{};
    tensor.type = type;
    tensor.dims = shape.get();
    tensor.data.raw_const = reinterpret_cast<const char*>(table.data());
    tensor.bytes = bytes;
    const auto strings = ReadStrings(tensor);
    return strings.ok() ? std::to_string(strings->size()) : std::string(strings.status().message());
  };
  constexpr auto kString = tflite::kTfLiteString;
  EXPECT_EQ(error(kString, {2}, table.size()), "2");
  EXPECT_EQ(error(kString, {2, 1}, table.size()), "2");
  EXPECT_EQ(error(kString, {0}, 0), "0") << "nobody has written it yet";
  EXPECT_THAT(error(kString, {2}, 0), HasSubstr("does not have 2 entries"));
  EXPECT_THAT(error(kString, {0}, table.size()), HasSubstr("does not have 0 entries"));
  EXPECT_THAT(error(kString, {-1}, table.size()), HasSubstr("has no shape"));
  EXPECT_THAT(error(tflite::kTfLiteInt32, {2}, table.size()), HasSubstr("is no string"));
}

}  // namespace
}  // namespace fuselite::interpreter
