// The operators of strings, tables and random numbers, which the interpreter alone runs: what they
// give, and what they refuse. tests/python compares them with LiteRT's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>

#include "interpreter/interpreter.h"
#include "interpreter/strings.h"
#include "interpreter/writer.h"
#include "kernels/hashtable/hashtable.h"
#include "kernels/random/random.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

constexpr DataType kText = DataType::kString, kNumber = DataType::kInt64, kInt = DataType::kInt32,
                   kFloat = DataType::kFloat32, kHandle = DataType::kResource;

std::vector<std::byte> Table(const Strings& strings) {
  std::vector<int32_t> head = {static_cast<int32_t>(strings.size())};
  auto end = static_cast<int32_t>(sizeof(int32_t) * (strings.size() + 2));
  head.push_back(end);
  for (const std::string& string : strings) {
    end += static_cast<int32_t>(string.size());
    head.push_back(end);
  }
  std::vector<std::byte> table = BytesOf(head);
  for (const std::string& string : strings) {
    const auto bytes = std::as_bytes(std::span(string));
    table.insert(table.end(), bytes.begin(), bytes.end());
  }
  return table;
}

Strings StringsOf(const TensorView& view) {
  const std::span table(static_cast<const std::byte*>(view.data), view.bytes);
  const auto strings = ReadStringTable(table, view.shape.elements());
  EXPECT_TRUE(strings.ok()) << strings.status().ToString();
  return strings.ok() ? Strings(strings->begin(), strings->end()) : Strings();
}

template <class T>
std::vector<T> Values(const TensorView& view) {
  const auto* const data = static_cast<const T*>(view.data);
  return std::vector<T>(data, data + view.shape.elements());
}

// A model under construction.
class Builder : public ModelWriter {
 public:
  int In(DataType type, const Shape& shape) {
    inputs_.push_back(AddTensor("in", type, shape));
    return inputs_.back();
  }
  int Texts(const Strings& strings) {
    return AddConstant("texts", kText, {static_cast<int32_t>(strings.size())}, Table(strings));
  }
  int Numbers(const std::vector<int64_t>& values) {
    return AddConstant("numbers", kNumber, {static_cast<int32_t>(values.size())}, values);
  }
  int Op(std::string_view name, std::vector<int> inputs, DataType type, const Shape& shape) {
    const int output = AddTensor(std::string(name), type, shape);
    AddOperator(*kernels::FindOperator(name), std::move(inputs), {output});
    return output;
  }
  int Op(std::string_view name, const kernels::Params& params, std::vector<int> inputs,
         DataType type, const Shape& shape) {
    const int output = AddTensor(std::string(name), type, shape);
    AddOperator(*kernels::FindOperator(name), params, std::move(inputs), {output});
    return output;
  }
  int Handle(DataType keys, DataType values, int32_t id = 7) {
    kernels::Params params;
    params.as<kernels::HashtableParams>() = {id, keys, values};
    return Op("HASHTABLE", params, {}, kHandle, {1});
  }
  void Import(int handle, int keys, int values) {
    AddOperator(*kernels::FindOperator("HASHTABLE_IMPORT"), {handle, keys, values}, {});
  }
  void End(std::vector<int> outputs) {
    SetInputs(std::exchange(inputs_, {}));
    SetOutputs(std::move(outputs));
  }

 private:
  std::vector<int> inputs_;
};

std::unique_ptr<Interpreter> Open(const ModelWriter& writer) {
  const auto file = std::make_shared<const std::vector<std::byte>>(writer.Finish());
  const auto model = LoadModelFromMemory(*file, file);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *Interpreter::Create(*model) : nullptr;
}

Status RunOnce(Interpreter& interpreter) {
  FUSELITE_RETURN_IF_ERROR(interpreter.AllocateTensors());
  return interpreter.Invoke();
}

// The message of the first call that fails.
std::string ErrorOf(const ModelWriter& writer) {
  const auto interpreter = Open(writer);
  const Status status = interpreter ? RunOnce(*interpreter) : Internal("no model");
  return status.ok() ? "none" : std::string(status.message());
}

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

void ExpectNear(const std::vector<float>& expected, const std::vector<float>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-6) << i;
}

// LiteRT's numbers of two runs, the second one from where the first has ended.
TEST(RandomNumbers, AreThoseOfTheSeeds) {
  struct Case {
    const char* name;
    kernels::RandomParams seeds;
    std::vector<float> runs[2];
  };
  const Case cases[] = {
      {"RANDOM_UNIFORM",
       {1, 0},
       {{0.81269646f, 0.07857466f, 0.8916855f, 0.16925514f, 0.06311357f, 0.54531074f},
        {0.66955376f, 0.9281193f, 0.122392416f, 0.8532245f, 0.90477383f, 0.7104306f}}},
      {"RANDOM_UNIFORM",
       {0, 5},
       {{0.92639303f, 0.35146642f, 0.7737814f, 0.4164468f, 0.67648005f, 0.7267511f},
        {0.00924468f, 0.50710154f, 0.62669647f, 0.19040668f, 0.9811013f, 0.4480567f}}},
      {"RANDOM_STANDARD_NORMAL",
       {1, 0},
       {{0.3052047f, 0.5671378f, 0.41852272f, 0.2326421f, -0.6602213f, -2.2560465f},
        {-0.390923f, 0.8058951f, -1.6334507f, 1.238097f, -0.43361515f, -0.11008383f}}},
  };
  for (const Case& c : cases) {
    for (const bool fed : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (fed ? " of a shape of the run" : ""));
      Builder b;
      kernels::Params params;
      params.as<kernels::RandomParams>() = c.seeds;
      const int shape = fed ? b.In(kInt, {1}) : b.AddConstant("shape", kInt, {1}, std::vector{6});
      b.End({b.Op(c.name, params, {shape}, kFloat, {6})});
      const auto interpreter = Open(b);
      ASSERT_TRUE(interpreter->AllocateTensors().ok());
      for (const std::vector<float>& expected : c.runs) {
        if (fed) *static_cast<int32_t*>(interpreter->input(0).data) = 6;
        ASSERT_TRUE(interpreter->Invoke().ok());
        ExpectNear(expected, Values<float>(interpreter->output(0)));
      }
    }
  }
}

TEST(RandomNumbers, WithoutSeedsAreOthersEachTime) {
  std::vector<std::vector<float>> drawn;
  for (int i = 0; i < 2; ++i) {
    Builder b;
    b.End(
        {b.Op("RANDOM_UNIFORM", {b.AddConstant("shape", kInt, {1}, std::vector{9})}, kFloat, {9})});
    const auto interpreter = Open(b);
    ASSERT_TRUE(RunOnce(*interpreter).ok());
    drawn.push_back(Values<float>(interpreter->output(0)));
  }
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(RandomNumbers, ChooseClassesByTheirLogits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0, 1, -1, 0.5f, 2, kNever, 2, -3};
  const std::vector<int64_t> runs[] = {{1, 1, 1, 1, 3, 0, 2, 0, 0, 0},
                                       {1, 1, 3, 1, 3, 2, 3, 0, 0, 0}};
  for (const DataType type : {kInt, kNumber}) {
    Builder b;
    kernels::Params params;
    params.as<kernels::RandomParams>() = {3, 9};
    const int count = b.AddConstant("count", kInt, Shape(), std::vector{5});
    b.End({b.Op("MULTINOMIAL", params, {b.In(kFloat, {2, 4}), count}, type, {2, 5})});
    const auto interpreter = Open(b);
    ASSERT_TRUE(interpreter->AllocateTensors().ok());
    std::memcpy(interpreter->input(0).data, logits.data(), logits.size() * sizeof(float));
    for (const std::vector<int64_t>& expected : runs) {
      ASSERT_TRUE(interpreter->Invoke().ok());
      const TensorView output = interpreter->output(0);
      const std::vector<int32_t> narrow =
          type == kInt ? Values<int32_t>(output) : std::vector<int32_t>();
      EXPECT_EQ(type == kInt ? std::vector<int64_t>(narrow.begin(), narrow.end())
                             : Values<int64_t>(output),
                expected);
    }
  }
}

TEST(RandomNumbers, RefuseOtherShapes) {
  const auto error = [](std::string_view name, const Shape& first, const Shape& second,
                        bool left_out) {
    Builder b;
    const bool classes = name == "MULTINOMIAL";
    std::vector<int> inputs = {b.In(classes ? kFloat : kInt, first)};
    if (classes) inputs.push_back(b.In(kInt, second));
    if (left_out) inputs.back() = -1;
    b.End({b.Op(name, inputs, classes ? kInt : kFloat, {1})});
    return ErrorOf(b);
  };
  EXPECT_THAT(error("RANDOM_UNIFORM", {1, 1}, {}, false), HasSubstr("a shape of [1,1]"));
  EXPECT_THAT(error("RANDOM_UNIFORM", {1}, {}, true), HasSubstr("left out"));
  EXPECT_THAT(error("MULTINOMIAL", {4}, {}, false), HasSubstr("logits of [4]"));
  EXPECT_THAT(error("MULTINOMIAL", {4, 0}, {}, false), HasSubstr("logits of [4,0]"));
  EXPECT_THAT(error("MULTINOMIAL", {4, 1}, {1}, false), HasSubstr("a count of [1]"));
}

}  // namespace
}  // namespace fuselite::interpreter
