// The operators of tables, which the interpreter alone runs: what they give, and what they refuse.
// tests/python compares them with LiteRT's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/interpreter/host_operators.h"

namespace fuselite::interpreter {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four keys, one of them twice.
const Strings kWords = {"the", "quick", "fox", "the"};
const std::vector<int64_t> kCounts = {5, -7, int64_t{1} << 40, 9};

// Imports the words with their counts, `twice` with other ones behind.
void WriteTable(Builder& b, bool from_words, bool twice) {
  const DataType keys = from_words ? kText : kNumber, values = from_words ? kNumber : kText;
  const int table = b.Handle(keys, values), words = b.Texts(kWords), counts = b.Numbers(kCounts);
  b.Import(table, from_words ? words : counts, from_words ? counts : words);
  if (twice) {
    const int other = b.Texts({"lazy"}), zero = b.Numbers({0});
    b.Import(table, from_words ? other : zero, from_words ? zero : other);
  }
  const Shape shape = from_words ? Shape{3} : Shape{2, 2};
  const int x = b.In(keys, shape);
  const int otherwise = from_words ? b.Numbers({-1}) : b.Texts({"none"});
  b.End({b.Op("HASHTABLE_FIND", {table, x, otherwise}, values, shape),
         b.Op("HASHTABLE_SIZE", {table}, kNumber, {1})});
}

TEST(HashTable, FromStringsGivesTheFirstValueOfAKeyAndElseTheDefault) {
  for (const bool twice : {false, true}) {
    Builder b;
    WriteTable(b, true, twice);
    const auto interpreter = Open(b);
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE(interpreter->AllocateTensors().ok());
      ASSERT_TRUE(interpreter->SetStrings(0, Table({"fox", "lazy", "the"})).ok());
      const Status status = interpreter->Invoke();
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_THAT(Values<int64_t>(interpreter->output(0)), ElementsAre(int64_t{1} << 40, -1, 5));
      EXPECT_THAT(Values<int64_t>(interpreter->output(1)), ElementsAre(3));
    }
  }
}

TEST(HashTable, OfStringsGivesThemInTheShapeOfTheKeys) {
  Builder b;
  WriteTable(b, false, false);
  const auto interpreter = Open(b);
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  const std::vector<int64_t> keys = {9, 4, -7, 5};
  std::memcpy(interpreter->input(0).data, keys.data(), sizeof(int64_t) * keys.size());
  ASSERT_TRUE(interpreter->Invoke().ok());
  EXPECT_EQ(interpreter->output(0).shape, Shape({2, 2}));
  EXPECT_THAT(StringsOf(interpreter->output(0)), ElementsAre("the", "none", "quick", "the"));
  EXPECT_THAT(Values<int64_t>(interpreter->output(1)), ElementsAre(4));
}

TEST(HashTable, RefusesWhatDoesNotFit) {
  struct Case {
    const char* message;
    void (*write)(Builder& b);
  };
  static constexpr auto kFind = [](Builder& b, int table, int keys, int otherwise, DataType type) {
    b.End({b.Op("HASHTABLE_FIND", {table, keys, otherwise}, type, {1})});
  };
  const Case cases[] = {
      {"a table from float32 to string", [](Builder& b) { b.End({b.Handle(kFloat, kText)}); }},
      {"a table from int64 to int64", [](Builder& b) { b.End({b.Handle(kNumber, kNumber)}); }},
      {"a table from string to string", [](Builder& b) { b.End({b.Handle(kText, kText)}); }},
      {"its output is no resource",
       [](Builder& b) {
         kernels::Params params;
         params.as<kernels::HashtableParams>() = {1, kNumber, kText};
         b.End({b.Op("HASHTABLE", params, {}, kInt, {1})});
       }},
      {"its first input is no handle",
       [](Builder& b) { kFind(b, b.Numbers({1}), b.Numbers({1}), b.Texts({""}), kText); }},
      {"its first input is no handle",
       [](Builder& b) { kFind(b, b.In(kHandle, {2}), b.Numbers({1}), b.Texts({""}), kText); }},
      {"its first input is no handle",
       [](Builder& b) {
         b.Import(b.In(kHandle, {1, 1}), b.Numbers({1}), b.Texts({""}));
         b.End({});
       }},
      {"its first input is no handle",
       [](Builder& b) { b.End({b.Op("HASHTABLE_SIZE", {b.Numbers({1})}, kNumber, {1})}); }},
      {"its handle names no table",
       [](Builder& b) { kFind(b, b.In(kHandle, {1}), b.Numbers({1}), b.Texts({""}), kText); }},
      {"its handle names no table",
       [](Builder& b) {
         b.Import(b.In(kHandle, {1}), b.Numbers({1}), b.Texts({""}));
         b.End({});
       }},
      {"its handle names no table",
       [](Builder& b) { b.End({b.Op("HASHTABLE_SIZE", {b.In(kHandle, {1})}, kNumber, {1})}); }},
      {"its output is no int64",
       [](Builder& b) { b.End({b.Op("HASHTABLE_SIZE", {b.Handle(kNumber, kText)}, kInt, {1})}); }},
      {"a table from int64 to int64",
       [](Builder& b) {
         b.Import(b.Handle(kNumber, kText), b.Numbers({1}), b.Numbers({1}));
         b.End({});
       }},
      {"keys and values have other shapes",
       [](Builder& b) {
         b.Import(b.Handle(kNumber, kText), b.Numbers({1, 2}), b.Texts({"a"}));
         b.End({});
       }},
      {"its table has keys or values of another type",
       [](Builder& b) {
         b.Import(b.Handle(kNumber, kText), b.Texts({"a"}), b.Numbers({1}));
         b.End({});
       }},
      {"its table has keys or values of another type",
       [](Builder& b) {
         kFind(b, b.Handle(kNumber, kText), b.Texts({"a"}), b.Numbers({1}), kNumber);
       }},
      {"its default has another type",
       [](Builder& b) {
         kFind(b, b.Handle(kNumber, kText), b.Numbers({1}), b.Numbers({1}), kText);
       }},
      {"a table from int64 to int64",
       [](Builder& b) {
         kFind(b, b.Handle(kNumber, kText), b.Numbers({1}), b.Numbers({1}), kNumber);
       }},
      {"nothing was imported into its table",
       [](Builder& b) {
         kFind(b, b.Handle(kNumber, kText), b.Numbers({1}), b.Texts({"a"}), kText);
       }},
      {"it has no default",
       [](Builder& b) {
         const int table = b.Handle(kNumber, kText);
         b.Import(table, b.Numbers({1}), b.Texts({"a"}));
         kFind(b, table, b.Numbers({1}), b.Texts({}), kText);
       }},
  };
  for (const auto& [message, write] : cases) {
    Builder b;
    write(b);
    EXPECT_THAT(ErrorOf(b), HasSubstr(message));
  }
}

}  // namespace
}  // namespace fuselite::interpreter
