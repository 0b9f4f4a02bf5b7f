// What stays in subgraphs that others run, and what goes through them: strings, constants that
// nodes make, state; and composites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/interpreter/flow_builder.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

TEST(Composite, GivesWhatItsDecompositionDoes) {
  Builder b;
  const int x = b.In({2}), y = b.Out({2});
  b.AddComposite("twice.negated", {std::byte{1}}, 1, {x}, {y});
  b.End({y});
  b.AddSubgraph("decomposition");
  const int value = b.In({2});
  b.End({b.Op("NEG", {b.Op("ADD", {value, value}, {2})}, {2})});
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const ModelOperator& op = (*model)->subgraphs[0].operators[0];
  EXPECT_EQ(op.composite_name, "twice.negated");
  EXPECT_EQ(op.attributes.size(), 1u);
  const auto interpreter = OpenBuiltin(b);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_NE(interpreter->output(0).data, nullptr) << "its shape is known";
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(-2, -4));
}

TEST(Composite, RefusesADecompositionThatDoesNotFit) {
  for (const bool takes_more : {true, false}) {
    Builder b;
    const int x = b.In({2}), y = b.Out({2});
    b.AddComposite("c", {}, 1, {x}, {y});
    b.End({y});
    b.AddSubgraph("decomposition");
    const int value = b.In({2});
    if (takes_more) b.In({2});
    b.End(takes_more ? std::vector{value} : std::vector{value, value});
    EXPECT_THAT(ErrorOf(b), HasSubstr(takes_more ? "takes 2 and gives 1 tensors"
                                                 : "takes 1 and gives 2 tensors"));
  }
}

// A table of one string.
std::vector<std::byte> TableOf(const std::string& text) {
  const int32_t head[] = {1, 12, 12 + static_cast<int32_t>(text.size())};
  std::vector<std::byte> table(sizeof head + text.size());
  std::memcpy(table.data(), head, sizeof head);
  std::memcpy(table.data() + sizeof head, text.data(), text.size());
  return table;
}

TEST(Branch, HandsStringsOn) {
  Builder b;
  const int asks = b.In({1}, kBool), text = b.In({1}, DataType::kString);
  const int out = b.Out({1}, DataType::kString);
  b.AddControlFlow(kIf, {1, 2}, {asks, text}, {out});
  b.End({out});
  for (int i = 0; i < 2; ++i) {
    b.AddSubgraph("branch");
    const int given = b.In({1}, DataType::kString);
    const int other = b.AddConstant("other", DataType::kString, {1}, TableOf("other"));
    b.End({i == 0 ? given : other});
  }
  const auto interpreter = OpenBuiltin(b);
  ASSERT_OK(interpreter->AllocateTensors());
  for (const bool first : {true, false, true}) {
    for (const std::string word : {"a", "much longer than that"}) {
      *static_cast<bool*>(interpreter->input(0).data) = first;
      ASSERT_OK(interpreter->SetStrings(1, TableOf(word)));
      ASSERT_OK(interpreter->Invoke());
      const TensorView output = interpreter->output(0);
      const std::vector<std::byte> expected = TableOf(first ? word : "other");
      ASSERT_EQ(output.bytes, expected.size());
      EXPECT_EQ(std::memcmp(output.data, expected.data(), expected.size()), 0);
    }
  }
}

// The condition of a loop that counts its first value, of one element, to `most`.
void Below(Builder& b, float most, const std::vector<Shape>& others) {
  b.AddSubgraph("condition");
  const int count = b.In({1});
  for (const Shape& shape : others) b.In(shape);
  b.End({b.Op("LESS", {count, b.AddConstant("most", kFloat, {1}, std::vector{most})}, {1}, kBool)});
}

// Where its values lie is the body's to say: a constant that it makes stays where it was made.
TEST(Loop, GivesAConstantThatItsBodyMakes) {
  for (const float turns : {1.0f, 2.0f, 3.0f}) {
    Builder b;
    const int count = b.In({1}), x = b.In({2}), p = b.Out({1}), q = b.Out({2});
    b.AddControlFlow(kWhile, {1, 2}, {count, x}, {p, q});
    b.End({q, p});
    Below(b, turns, {{2}});
    b.AddSubgraph("body");
    const int turn = b.In({1});
    b.In({2});
    const int made = b.Op("NEG", {b.AddConstant("c", kFloat, {2}, std::vector{3.0f, 4.0f})}, {2});
    b.End({b.Op("ADD", {turn, b.Number(1)}, {1}), made});
    const auto interpreter = OpenBuiltin(b);
    ASSERT_OK(interpreter->AllocateTensors());
    for (int run = 0; run < 2; ++run) {
      *static_cast<float*>(interpreter->input(0).data) = 0;
      ASSERT_OK(interpreter->Invoke());
      EXPECT_THAT(Output(*interpreter), ElementsAre(-3, -4));
    }
  }
}

// Values that the body hands on, reads, and hands on with no elements, in any number of turns.
TEST(Loop, KeepsWhatItsBodyHandsOn) {
  for (const float turns : {0.0f, 1.0f, 2.0f, 3.0f}) {
    Builder b;
    const int count = b.In({1}), x = b.In({1}), none = b.In({0, 3}), sum = b.In({1});
    const int p = b.Out({1}), q = b.Out({1}), r = b.Out({0, 3}), s = b.Out({1});
    b.AddControlFlow(kWhile, {1, 2}, {count, x, none, sum}, {p, q, r, s});
    b.End({s, q, r});
    Below(b, turns, {{1}, {0, 3}, {1}});
    b.AddSubgraph("body");
    const int turn = b.In({1}), value = b.In({1}), nothing = b.In({0, 3}), before = b.In({1});
    b.End({b.Op("ADD", {turn, b.Number(1)}, {1}), value, b.Op("NEG", {nothing}, {0, 3}),
           b.Op("ADD", {before, value}, {1})});
    const auto interpreter = OpenBuiltin(b);
    ASSERT_OK(interpreter->AllocateTensors());
    const float given[] = {0, 5, 0, 100};
    for (const int i : {0, 1, 3}) *static_cast<float*>(interpreter->input(i).data) = given[i];
    ASSERT_OK(interpreter->Invoke());
    EXPECT_THAT(Output(*interpreter), ElementsAre(100 + 5 * turns));
    EXPECT_THAT(Output(*interpreter, 1), ElementsAre(5));
    EXPECT_EQ(interpreter->output(2).shape, Shape({0, 3}));
  }
}

// y = the number of its runs since its state was zero, which its second input is.
tflite::TfLiteStatus CountRun(tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
  float* const state = context->tensors[node->inputs->data[1]].data.f;
  context->tensors[node->outputs->data[0]].data.f[0] = ++state[0];
  return tflite::kTfLiteOk;
}

// As LiteRT has it, which keeps no subgraph from run to run unless all tensors are preserved.
TEST(Subgraphs, KeepTheirStateFromRunToRunWithAllTensors) {
  OpResolver resolver;
  resolver.AddAll(TestOperators());
  tflite::TfLiteRegistration op = resolver.FindCustom("AddOne", 1)->registration;
  op.invoke = CountRun;
  resolver.AddCustom("CountRun", op);
  for (const int code : {kIf, kWhile}) {
    Builder b;
    const int asks = b.In({1}, kBool), x = b.In({1}), y = b.Out({1});
    if (code == kIf) b.AddControlFlow(kIf, {2, 2}, {asks, x}, {y});
    if (code == kWhile) b.AddControlFlow(kWhile, {1, 2}, {x}, {y});
    b.End({y});
    // Each run of the loop ends at an even number of its body's turns.
    b.AddSubgraph("condition");
    const int value = b.In({1}), two = b.AddConstant("two", kFloat, {1}, std::vector{2.0f});
    b.End({b.Op("NOT_EQUAL",
                {b.Op("FLOOR_MOD", {value, two}, {1}),
                 b.AddConstant("zero", kFloat, {1}, std::vector{0.0f})},
                {1}, kBool)});
    b.AddSubgraph("counts");
    const int given = b.In({1});
    const int state = b.AddTensor({"state", kFloat, {1}, {}, {}, true, {}});
    const int out = b.Out({1});
    b.AddCustomOperator("CountRun", {}, {given, state}, {out});
    b.End({out});
    for (const bool preserve : {false, true}) {
      InterpreterOptions options;
      options.resolver = &resolver;
      options.preserve_all_tensors = preserve;
      const auto interpreter = Open(b, options);
      ASSERT_OK(interpreter->AllocateTensors());
      const int once = code == kIf ? 1 : 2;
      for (int run = 1; run <= 3; ++run) {
        *static_cast<float*>(interpreter->input(1).data) = 1;
        ASSERT_OK(interpreter->Invoke());
        EXPECT_THAT(Output(*interpreter), ElementsAre(preserve ? once * run : once));
      }
      interpreter->ResetVariables();
      *static_cast<float*>(interpreter->input(1).data) = 1;
      ASSERT_OK(interpreter->Invoke());
      EXPECT_THAT(Output(*interpreter), ElementsAre(once));
    }
  }
}

}  // namespace
}  // namespace fuselite::interpreter
