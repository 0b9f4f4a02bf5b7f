// String tables as files and hosts give them: the number of strings, their offsets, their bytes.
#include "interpreter/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fuselite::interpreter
