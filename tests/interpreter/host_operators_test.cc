// Operators of strings, which the interpreter alone runs: what they give, and what they refuse.
// tests/python compares them with LiteRT's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/interpreter/host_operators.h"

namespace fuselite::interpreter {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Operators that the interpreter brings, with one operand left out, one more or one result more.
TEST(HostOperators, RefuseOtherNumbersOfOperands) {
  const std::map<std::string, std::pair<int, int>> counts = {{"HASHTABLE", {0, 1}},
                                                             {"HASHTABLE_IMPORT", {3, 0}},
                                                             {"HASHTABLE_FIND", {3, 1}},
                                                             {"HASHTABLE_SIZE", {1, 1}},
                                                             {"SKIP_GRAM", {1, 1}}};
  for (const auto& [name, right] : counts) {
    const auto error = [&name = name](int inputs, int outputs, bool left_out) {
      Builder b;
      std::vector<int> in, out;
      for (int i = 0; i < inputs; ++i) in.push_back(b.In(kText, {1}));
      for (int i = 0; i < outputs; ++i) out.push_back(b.AddTensor("out", kText, {1}));
      if (left_out) in.back() = -1;
      b.AddOperator(*kernels::FindOperator(name), in, out);
      b.End(out);
      return ErrorOf(b);
    };
    const auto [inputs, outputs] = right;
    EXPECT_THAT(error(inputs + 1, outputs, false), HasSubstr("expected")) << name;
    EXPECT_THAT(error(inputs, outputs + 1, false), HasSubstr("expected")) << name;
    if (inputs == 0) continue;
    EXPECT_THAT(error(inputs, outputs, true), HasSubstr("expected")) << name;
  }
}

// What is done to [2, 3] strings.
struct Move {
  const char* name;
  int (*write)(Builder& b, int x);
  Shape shape;
  Strings expected;
};

int Ints(Builder& b, const Shape& shape, const std::vector<int32_t>& values) {
  return b.AddConstant("ints", kInt, shape, values);
}

TEST(Strings, AreMoved) {
  const Strings given = {"the", "", "fox", "over", "the", "a much longer word"};
  const Move moves[] = {
      {"RESHAPE",
       [](Builder& b, int x) {
         return b.Op("RESHAPE", {x, Ints(b, {1}, {6})}, kText, {6});
       },
       {6},
       given},
      {"EXPAND_DIMS",
       [](Builder& b, int x) {
         return b.Op("EXPAND_DIMS", {x, Ints(b, {1}, {0})}, kText, {1, 2, 3});
       },
       {1, 2, 3},
       given},
      {"SLICE",
       [](Builder& b, int x) {
         return b.Op("SLICE", {x, Ints(b, {2}, {0, 1}), Ints(b, {2}, {2, 2})}, kText, {2, 2});
       },
       {2, 2},
       {"", "fox", "the", "a much longer word"}},
      {"TILE",
       [](Builder& b, int x) {
         return b.Op("TILE", {x, Ints(b, {2}, {2, 1})}, kText, {4, 3});
       },
       {4, 3},
       {"the", "", "fox", "over", "the", "a much longer word", "the", "", "fox", "over", "the",
        "a much longer word"}},
      {"GATHER_ND",
       [](Builder& b, int x) {
         return b.Op("GATHER_ND", {x, Ints(b, {2, 2}, {1, 2, 0, 0})}, kText, {2});
       },
       {2},
       {"a much longer word", "the"}},
      {"GATHER",
       [](Builder& b, int x) {
         const int row = b.Op("RESHAPE", {x, Ints(b, {1}, {6})}, kText, {6});
         return b.Op("GATHER", {row, Ints(b, {3}, {5, 0, 3})}, kText, {3});
       },
       {3},
       {"a much longer word", "the", "over"}},
  };
  for (const Move& move : moves) {
    SCOPED_TRACE(move.name);
    Builder b;
    b.End({move.write(b, b.In(kText, {2, 3}))});
    const auto interpreter = Open(b);
    ASSERT_TRUE(interpreter->AllocateTensors().ok());
    ASSERT_TRUE(interpreter->SetStrings(0, Table(given)).ok());
    const Status status = interpreter->Invoke();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(interpreter->output(0).shape, move.shape);
    EXPECT_EQ(StringsOf(interpreter->output(0)), move.expected);
  }
}

TEST(Strings, AreComparedAndFillShapes) {
  Builder b;
  const int x = b.In(kText, {3}), y = b.Texts({"a", "b", "c"}), word = b.In(kText, Shape());
  b.End({b.Op("EQUAL", {x, y}, DataType::kBool, {3}),
         b.Op("NOT_EQUAL", {x, y}, DataType::kBool, {3}),
         b.Op("FILL", {Ints(b, {1}, {2}), word}, kText, {2})});
  const auto interpreter = Open(b);
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  ASSERT_TRUE(interpreter->SetStrings(0, Table({"a", "bb", "c"})).ok());
  ASSERT_TRUE(interpreter->SetStrings(1, Table({"word"})).ok());
  ASSERT_TRUE(interpreter->Invoke().ok());
  EXPECT_THAT(Values<bool>(interpreter->output(0)), ElementsAre(true, false, true));
  EXPECT_THAT(Values<bool>(interpreter->output(1)), ElementsAre(false, true, false));
  EXPECT_THAT(StringsOf(interpreter->output(2)), ElementsAre("word", "word"));
}

TEST(Strings, AreRefusedWhereTheyAreNotMoved) {
  const auto error = [](int (*write)(Builder & b)) {
    Builder b;
    b.End({write(b)});
    return ErrorOf(b);
  };
  EXPECT_THAT(error([](Builder& b) {
                return b.Op("GATHER", {b.In(kText, {2, 2}), Ints(b, {1}, {0})}, kText, {1, 2});
              }),
              HasSubstr("gathers strings of shape [2,2]"));
  EXPECT_THAT(error([](Builder& b) {
                return b.Op("GATHER", {b.In(kText, {2}), Ints(b, {1}, {0})}, kInt, {1});
              }),
              HasSubstr("output 0 is declared as int32, but is string"));
  EXPECT_THAT(error([](Builder& b) {
                return b.Op("GATHER", {b.In(kInt, {2}), Ints(b, {1}, {0})}, kText, {1});
              }),
              HasSubstr("output 0 is declared as string"));
  EXPECT_NE(error([](Builder& b) { return b.Op("NEG", {b.In(kText, {2})}, kText, {2}); }), "none");
}

struct Grams {
  const char* sentence;
  kernels::SkipGramParams params;
  Strings expected;
};

TEST(SkipGram, TakesWordsInTheirOrder) {
  const Grams cases[] = {
      {"a b c", {1, 0, false}, {"a", "b", "c"}},
      {"a b c", {2, 0, false}, {"a b", "b c"}},
      {"a b c", {2, 1, false}, {"a b", "a c", "b c"}},
      {"a b c d", {3, 1, false}, {"a b c", "a b d", "a c d", "b c d"}},
      {"a b c", {2, 0, true}, {"a b", "a", "b c", "b", "c"}},
      {"a b", {3, 2, true}, {}},
      {"a b c", {2, -3, false}, {}},
      {"a b c", {1, -1, false}, {"a", "b", "c"}},
      {"", {1, 0, false}, {}},
      {"tabs\tand\rlines\nalike", {1, 0, false}, {"tabs", "and", "lines", "alike"}},
      {"two  spaces", {1, 0, false}, {"two", "spaces"}},
      {"one\x0eword", {1, 0, false}, {"one\x0eword"}},
      // In LiteRT, too, the first character belongs to a word whatever it is.
      {"ab ", {1, 0, false}, {"ab"}},
      {"ab  ", {1, 0, false}, {"ab"}},
  };
  for (const Grams& c : cases) {
    SCOPED_TRACE(c.sentence);
    Builder b;
    kernels::Params params;
    params.as<kernels::SkipGramParams>() = c.params;
    b.End({b.Op("SKIP_GRAM", params, {b.Texts({c.sentence, "of the second one"})}, kText, {1})});
    const auto interpreter = Open(b);
    const Status status = RunOnce(*interpreter);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(StringsOf(interpreter->output(0)), c.expected);
  }
}

// Of many words: no gram is left out, and none costs a frame of the stack for each word.
TEST(SkipGram, TakesAsManyWordsAsASentenceHas) {
  constexpr int kWords = 100000;
  std::string sentence = "a";
  for (int i = 1; i < kWords; ++i) sentence += " a";
  Builder b;
  kernels::Params params;
  params.as<kernels::SkipGramParams>() = {kWords, 3, false};
  b.End({b.Op("SKIP_GRAM", params, {b.Texts({sentence})}, kText, {1})});
  const auto interpreter = Open(b);
  const Status status = RunOnce(*interpreter);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(StringsOf(interpreter->output(0)), Strings{sentence});
}

// 2^20 choices of words, of which a budget allows few.
TEST(SkipGram, AsksTheBudget) {
  Builder b;
  kernels::Params params;
  params.as<kernels::SkipGramParams>() = {21, 30, true};
  const Strings sentence = {"a b c d e f g h i j k l m n o p q r s t u"};
  b.End({b.Op("SKIP_GRAM", params, {b.Texts(sentence)}, kText, {1})});
  for (const Budget& budget : {Budget{.max_memory = 1e6}, Budget{.max_multiply_adds = 1e3}}) {
    InterpreterOptions options;
    options.budget = budget;
    const auto interpreter = Open(b, options);
    EXPECT_EQ(RunOnce(*interpreter).code(), StatusCode::kOverBudget);
  }
}

TEST(SkipGram, RefusesWhatIsNoSentence) {
  const auto error = [](int size, const Strings& sentences, DataType in, DataType out) {
    Builder b;
    kernels::Params params;
    params.as<kernels::SkipGramParams>() = {size, 0, false};
    const int x = in == kText ? b.Texts(sentences) : b.Numbers({1});
    b.End({b.Op("SKIP_GRAM", params, {x}, out, {1})});
    return ErrorOf(b);
  };
  EXPECT_EQ(error(1, {"a"}, kText, kText), "none");
  EXPECT_THAT(error(0, {"a"}, kText, kText), HasSubstr("n-grams of 0 words"));
  EXPECT_THAT(error(1, {}, kText, kText), HasSubstr("no sentence"));
  EXPECT_THAT(error(1, {"a"}, kNumber, kText), HasSubstr("strings alone"));
  EXPECT_THAT(error(1, {"a"}, kText, kNumber), HasSubstr("strings alone"));
}

}  // namespace
}  // namespace fuselite::interpreter
