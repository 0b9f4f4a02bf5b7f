#include "tests/fuzz/text_phrases.h"

#include "kernels/hashtable/hashtable.h"

namespace fuselite::fuzz {
namespace {

using interpreter::ModelWriter;
using kernels::testing::Random;

constexpr DataType kText = DataType::kString, kNumber = DataType::kInt64, kInt = DataType::kInt32;

class TextPhrase {
 public:
  TextPhrase(ModelWriter& writer, Random& random, std::vector<int>& inputs)
      : writer_(writer), random_(random), inputs_(inputs) {}

  std::vector<int> Add() {
    switch (random_.Int(0, 5)) {
      case 0: return SkipGram();
      case 1: return Table();
      case 2: return Same();
      case 3: return Gather();
      case 4: return Fill();
      default: return Reshape();
    }
  }

 private:
  static const kernels::OperatorDef& Find(std::string_view name) {
    return *kernels::FindOperator(name);
  }
  int Texts(const Shape& shape) {
    if (random_.Chance(0.4)) {
      inputs_.push_back(writer_.AddTensor("text", kText, shape));
      return inputs_.back();
    }
    std::vector<std::string> strings;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      strings.emplace_back(random_.Pick({"the quick brown fox", "a b", "", "a", "a a"}));
    }
    return writer_.AddTensor(
        {.name = "text", .type = kText, .shape = shape, .data = TextTable(strings)});
  }
  int Numbers(const Shape& shape) {
    if (random_.Chance(0.4)) {
      inputs_.push_back(writer_.AddTensor("number", kNumber, shape));
      return inputs_.back();
    }
    std::vector<int64_t> values;
    for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(random_.Int(-1, 3));
    return writer_.AddConstant("number", kNumber, shape, values);
  }
  int Entries(DataType type, const Shape& shape) {
    return type == kText ? Texts(shape) : Numbers(shape);
  }
  Shape Some() { return {static_cast<int32_t>(random_.Int(1, 3))}; }
  int Made(DataType type, const Shape& shape = {1}) {
    return writer_.AddTensor("made", type, shape);
  }

  std::vector<int> SkipGram() {
    kernels::Params params;
    params.as<kernels::SkipGramParams>() = {static_cast<int32_t>(random_.Int(0, 3)),
                                            static_cast<int32_t>(random_.Int(-1, 3)),
                                            random_.Chance(0.5)};
    const int x = Texts({1}), y = Made(kText);
    writer_.AddOperator(Find("SKIP_GRAM"), params, {x}, {y});
    return {y};
  }

  std::vector<int> Table() {
    const bool from_text = random_.Chance(0.5);
    const DataType keys = from_text ? kText : kNumber, values = from_text ? kNumber : kText;
    kernels::Params params;
    params.as<kernels::HashtableParams>() = {static_cast<int32_t>(random_.Int(1, 2)), keys, values};
    const int handle = Made(DataType::kResource), found = Made(values), size = Made(kNumber);
    writer_.AddOperator(Find("HASHTABLE"), params, {}, {handle});
    const Shape entries = Some(), asked = Some();
    const int from = Entries(keys, entries), to = Entries(values, entries);
    if (random_.Chance(0.9)) writer_.AddOperator(Find("HASHTABLE_IMPORT"), {handle, from, to}, {});
    const int x = Entries(keys, asked), otherwise = Entries(values, {1});
    writer_.AddOperator(Find("HASHTABLE_FIND"), {handle, x, otherwise}, {found});
    writer_.AddOperator(Find("HASHTABLE_SIZE"), {handle}, {size});
    return {found, size};
  }

  std::vector<int> Same() {
    const Shape shape = Some();
    const int x = Texts(shape), y = Texts(random_.Chance(0.5) ? shape : Shape{1});
    const int same = Made(DataType::kBool, shape);
    writer_.AddOperator(Find(random_.Pick({"EQUAL", "NOT_EQUAL"})), {x, y}, {same});
    return {same};
  }

  std::vector<int> Gather() {
    const int x = Texts({3}), y = Made(kText, {2});
    const auto place = [&] { return static_cast<int32_t>(random_.Int(0, 3)); };
    const std::vector<int32_t> places = {place(), place()};
    const int which = writer_.AddConstant("which", kInt, {2}, places);
    writer_.AddOperator(Find("GATHER"), {x, which}, {y});
    return {y};
  }

  std::vector<int> Fill() {
    const int length = writer_.AddTensor("length", kInt, {1}), y = Made(kText);
    inputs_.push_back(length);
    const int x = Texts({});
    writer_.AddOperator(Find("FILL"), {length, x}, {y});
    return {y};
  }

  std::vector<int> Reshape() {
    const int x = Texts({2, 1}), y = Made(kText, {1, 2}), z = Made(kText, {1, 1, 2});
    const int shape = writer_.AddConstant<int32_t>("shape", kInt, {2}, {1, 2});
    const int axis = writer_.AddConstant<int32_t>("axis", kInt, {1}, {0});
    writer_.AddOperator(Find("RESHAPE"), {x, shape}, {y});
    writer_.AddOperator(Find("EXPAND_DIMS"), {y, axis}, {z});
    return {z};
  }

  ModelWriter& writer_;
  Random& random_;
  std::vector<int>& inputs_;
};

}  // namespace

std::vector<int> AddTextPhrase(ModelWriter& writer, Random& random, std::vector<int>& inputs) {
  return TextPhrase(writer, random, inputs).Add();
}

std::vector<std::byte> TextTable(const std::vector<std::string>& strings) {
  std::vector<int32_t> head = {static_cast<int32_t>(strings.size())};
  auto end = static_cast<int32_t>(sizeof(int32_t) * (strings.size() + 2));
  head.push_back(end);
  for (const std::string& string : strings) {
    end += static_cast<int32_t>(string.size());
    head.push_back(end);
  }
  std::vector<std::byte> table = interpreter::BytesOf(head);
  for (const std::string& string : strings) {
    const auto bytes = std::as_bytes(std::span(string));
    table.insert(table.end(), bytes.begin(), bytes.end());
  }
  return table;
}

}  // namespace fuselite::fuzz
