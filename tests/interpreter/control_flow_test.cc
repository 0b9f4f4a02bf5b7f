// Loops, branches and composites in the interpreter alone: what they give, by hand, and what they
// refuse.
#include "interpreter/operators/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/interpreter/flow_builder.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

// `x` in a shape that the run tells: the values behind it are not the plan's.
int Reshaped(Builder& b, int x, int length) {
  const int shape = b.Op("CAST", {b.Op("ABS", {length}, {1})}, {1}, kInt);
  return b.Op("RESHAPE", {x, shape}, {1});
}

// Two values that exchange their places and count up by one and ten, until the first has reached
// `limit`; a third one that passes.
enum class Dynamic { kNowhere, kBody, kCondition };
void WriteLoop(Builder& b, float limit, Dynamic dynamic) {
  const int x = b.In({1}), y = b.In({1}), z = b.In({1});
  const int p = b.Out({1}), q = b.Out({1}), r = b.Out({1});
  b.AddControlFlow(kWhile, {1, 2}, {x, y, z}, {p, q, r});
  b.End({p, q, r});
  b.AddSubgraph("condition");
  int first = b.In({1});
  b.In({1});
  const int length = b.In({1});
  if (dynamic == Dynamic::kCondition) first = Reshaped(b, first, length);
  b.End(
      {b.Op("LESS", {first, b.AddConstant("limit", kFloat, {1}, std::vector{limit})}, {1}, kBool)});
  b.AddSubgraph("body");
  const int u = b.In({1}), v = b.In({1}), w = b.In({1});
  int up = b.Op("ADD", {v, b.Number(1)}, {1});
  if (dynamic == Dynamic::kBody) up = Reshaped(b, up, w);
  b.End({up, b.Op("ADD", {u, b.Number(10)}, {1}), w});
}

TEST(While, RunsUntilItsConditionIsFalse) {
  for (const Dynamic dynamic : {Dynamic::kNowhere, Dynamic::kBody, Dynamic::kCondition}) {
    SCOPED_TRACE(static_cast<int>(dynamic));
    for (int again = 0; again < 2; ++again) {
      Builder b;
      WriteLoop(b, 5, dynamic);
      const auto interpreter = OpenBuiltin(b);
      ASSERT_TRUE(interpreter->AllocateTensors().ok());
      for (int run = 0; run < 2; ++run) {
        *static_cast<float*>(interpreter->input(0).data) = 1;
        *static_cast<float*>(interpreter->input(1).data) = 2;
        *static_cast<float*>(interpreter->input(2).data) = 1;
        const Status status = interpreter->Invoke();
        ASSERT_TRUE(status.ok()) << status.ToString();
        // 1, 2 -> 3, 11 -> 12, 13.
        EXPECT_THAT(Output(*interpreter, 0), ElementsAre(12));
        EXPECT_THAT(Output(*interpreter, 1), ElementsAre(13));
        EXPECT_THAT(Output(*interpreter, 2), ElementsAre(1));
        // No turn at all.
        *static_cast<float*>(interpreter->input(0).data) = 7;
        ASSERT_TRUE(interpreter->Invoke().ok());
        EXPECT_THAT(Output(*interpreter, 0), ElementsAre(7));
        EXPECT_THAT(Output(*interpreter, 1), ElementsAre(2));
      }
    }
  }
}

// A body that gives one value in two places, or its inputs in others.
TEST(While, GivesAValueInSeveralPlaces) {
  for (const bool exchanged : {false, true}) {
    Builder b;
    const int x = b.In({1}), y = b.In({1}), p = b.Out({1}), q = b.Out({1});
    b.AddControlFlow(kWhile, {1, 2}, {x, y}, {p, q});
    b.End({p, q});
    b.AddSubgraph("condition");
    const int first = b.In({1});
    b.In({1});
    b.End(
        {b.Op("LESS", {first, b.AddConstant("most", kFloat, {1}, std::vector{6.0f})}, {1}, kBool)});
    b.AddSubgraph("body");
    const int u = b.In({1}), v = b.In({1}), sum = b.Op("ADD", {u, v}, {1});
    b.End(exchanged ? std::vector{sum, u} : std::vector{sum, sum});
    const auto interpreter = OpenBuiltin(b);
    ASSERT_TRUE(interpreter->AllocateTensors().ok());
    *static_cast<float*>(interpreter->input(0).data) = 1;
    *static_cast<float*>(interpreter->input(1).data) = 2;
    ASSERT_TRUE(interpreter->Invoke().ok());
    // 1, 2 -> 3, 1 -> 4, 3 -> 7, 4; or 1, 2 -> 3, 3 -> 6, 6.
    EXPECT_THAT(Output(*interpreter, 0), ElementsAre(exchanged ? 7 : 6));
    EXPECT_THAT(Output(*interpreter, 1), ElementsAre(exchanged ? 4 : 6));
  }
}

// The value grows with each turn.
TEST(While, GivesShapesThatTurnsChange) {
  Builder b;
  const int x = b.In({1}), y = b.Out({1});
  b.AddControlFlow(kWhile, {1, 2}, {x}, {y});
  b.End({y});
  b.AddSubgraph("condition");
  const int axes = b.AddConstant("axes", kInt, {1}, std::vector<int32_t>{0});
  const int sum = b.Op("SUM", {b.In({1}), axes}, Shape());
  b.End({b.Op("LESS", {sum, b.Number(5)}, Shape(), kBool)});
  b.AddSubgraph("body");
  const int u = b.In({1});
  b.End({b.Op("CONCATENATION", {u, u}, {2})});
  const auto interpreter = OpenBuiltin(b);
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(interpreter->AllocateTensors().ok());
    *static_cast<float*>(interpreter->input(0).data) = 2;
    const Status status = interpreter->Invoke();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_THAT(Output(*interpreter), ElementsAre(2, 2, 2, 2));
    EXPECT_EQ(interpreter->output(0).shape, Shape({4}));
  }
}

// As many values in another shape: [2, 3] after an even number of turns, [3, 2] after an odd one.
TEST(While, GivesShapesOfAsManyValues) {
  for (const int turns : {2, 3}) {
    Builder b;
    const int counter = b.In({1}), x = b.In({2, 3}), p = b.Out({1}), q = b.Out({2, 3});
    b.AddControlFlow(kWhile, {1, 2}, {counter, x}, {p, q});
    b.End({p, q});
    b.AddSubgraph("condition");
    const int asked = b.In({1});
    b.In({2, 3});
    b.End({b.Op("LESS", {asked, b.Number(static_cast<float>(turns))}, {1}, kBool)});
    b.AddSubgraph("body");
    const int i = b.In({1}), u = b.In({2, 3});
    const int order = b.AddConstant("order", kInt, {2}, std::vector<int32_t>{1, 0});
    b.End({b.Op("ADD", {i, b.Number(1)}, {1}), b.Op("TRANSPOSE", {u, order}, {3, 2})});
    const auto interpreter = OpenBuiltin(b);
    ASSERT_TRUE(interpreter->AllocateTensors().ok());
    *static_cast<float*>(interpreter->input(0).data) = 0;
    auto* const values = static_cast<float*>(interpreter->input(1).data);
    for (int k = 0; k < 6; ++k) values[k] = static_cast<float>(k);
    const Status status = interpreter->Invoke();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(interpreter->output(1).shape, turns == 2 ? Shape({2, 3}) : Shape({3, 2}));
    EXPECT_THAT(Output(*interpreter, 1),
                turns == 2 ? ElementsAre(0, 1, 2, 3, 4, 5) : ElementsAre(0, 3, 1, 4, 2, 5));
  }
}

TEST(Case, RunsTheBranchOfItsIndexAndElseTheLast) {
  Builder b;
  const int index = b.In({1}, kInt), x = b.In({1}), y = b.Out({1});
  b.AddControlFlow(kCase, {1, 2, 3}, {index, x}, {y});
  b.End({y});
  for (const float factor : {2.0f, 3.0f, 5.0f}) {
    b.AddSubgraph("branch");
    b.End({b.Op("MUL", {b.In({1}), b.Number(factor)}, {1})});
  }
  const auto interpreter = OpenBuiltin(b);
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  *static_cast<float*>(interpreter->input(1).data) = 7;
  for (const auto& [given, expected] :
       {std::pair(0, 14.0f), {1, 21.0f}, {2, 35.0f}, {3, 35.0f}, {-1, 35.0f}}) {
    *static_cast<int32_t*>(interpreter->input(0).data) = given;
    ASSERT_TRUE(interpreter->Invoke().ok());
    EXPECT_THAT(Output(*interpreter), ElementsAre(expected)) << given;
  }
}

// The first result has a shape of its own in the second branch, all else has one in all of them.
TEST(Case, GivesShapesThatBranchesDifferIn) {
  Builder b;
  const int index = b.In({1}, kInt), x = b.In({1}), y = b.Out({1}), z = b.Out({1});
  b.AddControlFlow(kCase, {1, 2, 3}, {index, x}, {y, z});
  b.End({y, z});
  for (const bool twice : {false, true, false}) {
    b.AddSubgraph("branch");
    const int value = b.In({1}), turned = b.Op("NEG", {value}, {1});
    b.End({twice ? b.Op("CONCATENATION", {value, value}, {2}) : turned, turned});
  }
  const auto interpreter = OpenBuiltin(b);
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  for (const int chosen : {0, 1, 2, 1}) {
    *static_cast<int32_t*>(interpreter->input(0).data) = chosen;
    *static_cast<float*>(interpreter->input(1).data) = 7;
    const Status status = interpreter->Invoke();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(interpreter->output(0).shape, chosen == 1 ? Shape({2}) : Shape({1}));
    const std::vector<float> once = {-7}, twice = {7, 7};
    EXPECT_EQ(Output(*interpreter, 0), chosen == 1 ? twice : once);
    EXPECT_THAT(Output(*interpreter, 1), ElementsAre(-7));
  }
}

TEST(Case, WithoutBranchesIsNoModel) {
  Builder b;
  const int index = b.In({1}, kInt), y = b.Out({1});
  b.AddControlFlow(kCase, {}, {index}, {y});
  b.End({y});
  const std::vector<std::byte> file = b.Finish();
  EXPECT_THAT(LoadModelFromMemory(file, nullptr).status().message(),
              HasSubstr("does not name its subgraphs"));
}

// What `callee` subgraphs take and give, and the operands of the node that runs them.
struct Call {
  const char* message;  // "none": it runs
  int code;
  std::vector<DataType> inputs, outputs;
  std::vector<std::pair<std::vector<DataType>, std::vector<DataType>>> callees;
};

TEST(ControlFlow, RefusesSubgraphsThatDoNotFit) {
  using Types = std::vector<DataType>;
  const std::pair<Types, Types> same = {{kFloat}, {kFloat}}, more = {{kFloat, kFloat}, {kFloat}},
                                gives_more = {{kFloat}, {kFloat, kFloat}},
                                takes_int = {{kInt}, {kFloat}}, gives_int = {{kFloat}, {kInt}},
                                asks = {{kFloat}, {kBool}}, asks_twice = {{kFloat}, {kBool, kBool}};
  const Call cases[] = {
      {"none", kIf, {kBool, kFloat}, {kFloat}, {same, same}},
      {"takes 2 and gives 1 tensors, expected 1 and 1",
       kIf,
       {kBool, kFloat},
       {kFloat},
       {more, same}},
      {"takes 2 and gives 1 tensors, expected 1 and 1",
       kIf,
       {kBool, kFloat},
       {kFloat},
       {same, more}},
      {"takes 1 and gives 2 tensors", kIf, {kBool, kFloat}, {kFloat}, {same, gives_more}},
      {"input 0 of subgraph 1 has another type", kIf, {kBool, kFloat}, {kFloat}, {takes_int, same}},
      {"output 0 of subgraph 2 has another type",
       kIf,
       {kBool, kFloat},
       {kFloat},
       {same, gives_int}},
      {"its condition is not one bool", kIf, {kFloat, kFloat}, {kFloat}, {same, same}},
      {"has nothing to choose by", kIf, {}, {kFloat}, {same, same}},
      {"none", kCase, {kInt, kFloat}, {kFloat}, {same}},
      {"its index is not one int32", kCase, {kFloat, kFloat}, {kFloat}, {same}},
      {"input 0 of subgraph 2 has another type",
       kCase,
       {kInt, kFloat},
       {kFloat},
       {same, takes_int}},
      {"none", kWhile, {kFloat}, {kFloat}, {asks, same}},
      {"has other outputs than inputs", kWhile, {kFloat, kFloat}, {kFloat}, {asks, same}},
      {"takes 2 and gives 1 tensors", kWhile, {kFloat}, {kFloat}, {more, same}},
      {"takes 1 and gives 2 tensors", kWhile, {kFloat}, {kFloat}, {asks_twice, same}},
      {"takes 1 and gives 2 tensors", kWhile, {kFloat}, {kFloat}, {asks, gives_more}},
      {"input 0 of subgraph 1 has another type", kWhile, {kFloat}, {kFloat}, {takes_int, same}},
      {"output 0 of subgraph 2 has another type", kWhile, {kFloat}, {kFloat}, {asks, gives_int}},
      {"its condition is not one bool", kWhile, {kFloat}, {kFloat}, {same, same}},
      {"none", kOnce, {}, {}, {{{}, {}}}},
      {"its initializer, has inputs", kOnce, {}, {}, {{{kFloat}, {}}}},
      {"its initializer, has inputs", kOnce, {}, {}, {{{}, {kFloat}}}},
      {"has 1 inputs and 0 outputs", kOnce, {kFloat}, {}, {{{}, {}}}},
  };
  for (const Call& c : cases) {
    SCOPED_TRACE(c.message);
    Builder b;
    std::vector<int> inputs, outputs, callees;
    for (const DataType type : c.inputs) inputs.push_back(b.In({1}, type));
    for (const DataType type : c.outputs) outputs.push_back(b.Out({1}, type));
    for (size_t i = 0; i < c.callees.size(); ++i) callees.push_back(static_cast<int>(i) + 1);
    b.AddControlFlow(c.code, callees, inputs, outputs);
    b.End(outputs);
    for (const auto& [takes, gives] : c.callees) {
      b.AddSubgraph("callee");
      std::vector<int> results;
      for (const DataType type : takes) b.In({1}, type);
      // Zeros: a loop's condition is false.
      for (const DataType type : gives) {
        results.push_back(
            b.AddConstant("zero", type, {1}, std::vector<std::byte>(type == kBool ? 1 : 4)));
      }
      b.End(results);
    }
    EXPECT_THAT(ErrorOf(b), HasSubstr(c.message));
  }
}

// A branch or a loop whose results have one shape, whatever happens, gives them memory ahead of
// the run; others find it then.
TEST(ControlFlow, GivesShapesThatAreKnownBeforeTheRun) {
  for (const int code : {kIf, kWhile}) {
    for (const bool same : {true, false}) {
      SCOPED_TRACE(std::to_string(code) + (same ? ", same" : ", others"));
      Builder b;
      const int asks = b.In({1}, kBool), x = b.In({2}), y = b.Out({2});
      if (code == kIf) b.AddControlFlow(kIf, {1, 2}, {asks, x}, {y});
      if (code == kWhile) b.AddControlFlow(kWhile, {1, 2}, {x}, {y});
      b.End({y});
      b.AddSubgraph("first");
      const int value = b.In({2});
      const int axes = b.AddConstant("axes", kInt, {1}, std::vector<int32_t>{0});
      b.End({code == kIf ? b.Op("NEG", {value}, {2})
                         : b.Op("LESS", {b.Op("SUM", {value, axes}, Shape()), b.Number(0)}, Shape(),
                                kBool)});
      b.AddSubgraph("second");
      const int other = b.In({2});
      b.End({same ? b.Op("ABS", {other}, {2}) : b.Op("CONCATENATION", {other, other}, {4})});
      const auto interpreter = OpenBuiltin(b);
      ASSERT_OK(interpreter->AllocateTensors());
      for (size_t i = 0; i < interpreter->inputs().size(); ++i) {
        std::memset(interpreter->input(i).data, 0, interpreter->input(i).bytes);
      }
      EXPECT_EQ(interpreter->output(0).data != nullptr, same);
      const void* const before = interpreter->output(0).data;
      ASSERT_OK(interpreter->Invoke());
      EXPECT_EQ(interpreter->output(0).data == before, same);
    }
  }
}

TEST(ControlFlow, IsChosenByOneValueOfItsType) {
  struct Case {
    const char* message;
    int code;
    DataType type;
    Shape shape;
  };
  const Case cases[] = {{"none", kIf, kBool, {1}},
                        {"its condition is not one bool", kIf, DataType::kInt8, {1}},
                        {"its condition is not one bool", kIf, kBool, {2}},
                        {"none", kCase, kInt, Shape()},
                        {"its index is not one int32", kCase, kInt, {2}},
                        {"its index is not one int32", kCase, kFloat, {1}}};
  for (const Case& c : cases) {
    Builder b;
    const int chooses = b.In(c.shape, c.type), x = b.In({1}), y = b.Out({1});
    b.AddControlFlow(c.code, {1, 1}, {chooses, x}, {y});
    b.End({y});
    b.AddSubgraph("branch");
    b.End({b.Op("NEG", {b.In({1})}, {1})});
    EXPECT_EQ(ErrorOf(b) == "none", std::string(c.message) == "none");
    EXPECT_THAT(ErrorOf(b), HasSubstr(c.message));
  }
}

TEST(ControlFlow, RefusesArgumentsThatAreLeftOut) {
  for (const bool choice : {true, false}) {
    Builder b;
    const int asks = b.In({1}, kBool), x = b.In({1}), y = b.Out({1});
    b.AddControlFlow(kIf, {1, 1}, {choice ? -1 : asks, choice ? x : -1}, {y});
    b.End({y});
    b.AddSubgraph("branch");
    b.End({b.Op("NEG", {b.In({1})}, {1})});
    EXPECT_THAT(ErrorOf(b), HasSubstr(choice ? "has nothing to choose by"
                                             : "input 0 of subgraph 1 has another type"));
  }
}

TEST(ControlFlow, ErrorsNameTheSubgraph) {
  Builder b;
  const int chooses = b.In({1}, kBool), y = b.Out({2});
  b.AddControlFlow(kIf, {1, 1}, {chooses}, {y});
  b.End({y});
  b.AddSubgraph("reads");
  const int handle = b.Out(Shape(), kHandle), value = b.Out({2});
  b.AddOperator(kVarHandle, {}, {handle});
  b.AddOperator(kRead, {handle}, {value});
  b.End({value});
  const std::string error = ErrorOf(b);
  EXPECT_THAT(error, ::testing::StartsWith("node 0 IF: "));
  EXPECT_THAT(error, HasSubstr("subgraph 1: node 1 READ_VARIABLE: nothing was assigned"));
}

}  // namespace
}  // namespace fuselite::interpreter
