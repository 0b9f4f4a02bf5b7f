// What subgraphs that operators run keep from call to call: states, and what nodes remember.
// tests/python compares it with LiteRT.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/interpreter/flow_builder.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using namespace testing;

// The sum of `x` and all that came before it.
int Summed(Builder& b, int x) {
  const int one = b.AddConstant("one", kFloat, {1, 1}, std::vector{1.0f});
  const int zero = b.AddConstant("zero", kFloat, {1}, std::vector{0.0f});
  const int state = b.AddTensor({"state", kFloat, {1, 1}, {}, {}, true, {}});
  return b.Op("RNN", {x, one, one, zero, state}, {1, 1});
}

std::vector<float> Run(Interpreter& interpreter) {
  for (size_t i = 0; i < interpreter.inputs().size(); ++i) {
    const TensorView input = interpreter.input(static_cast<int>(i));
    if (input.type == kFloat) *static_cast<float*>(input.data) = 1;
  }
  const Status status = interpreter.Invoke();
  EXPECT_TRUE(status.ok()) << status.ToString();
  return Output(interpreter);
}

// The results of three runs that begin with ones.
std::vector<float> ThreeRuns(const ModelWriter& writer, bool preserve = false,
                             const OpResolver& resolver = OpResolver::WithBuiltins()) {
  InterpreterOptions options;
  options.preserve_all_tensors = preserve;
  options.resolver = &resolver;
  const auto interpreter = Open(writer, options);
  const Status status = interpreter->AllocateTensors();
  EXPECT_TRUE(status.ok()) << status.ToString();
  std::vector<float> results;
  for (int run = 0; run < 3; ++run) results.push_back(Run(*interpreter).front());
  return results;
}

constexpr int kComposite = tflite::kTfLiteBuiltinStablehloComposite;

void WriteCall(Builder& b, int code) {
  const int selector = code == kComposite ? -1 : b.In({1}, code == kIf ? kBool : kInt);
  const int x = b.In({1, 1}), y = b.Out({1, 1});
  if (code == kComposite) {
    b.AddComposite("test.sum", {}, 1, {x}, {y});
  } else {
    b.AddControlFlow(code, {1, 2}, {selector, x}, {y});
  }
  b.End({y});
  for (int branch = 0; branch < 2; ++branch) {
    b.AddSubgraph("branch");
    b.End({Summed(b, b.In({1, 1}))});
  }
}

// `turns` turns, each of which adds 1; `handle`: a variable's handle is among the loop's values.
void WriteLoop(Builder& b, float turns, bool handle) {
  const int count = b.Number(0), x = b.In({1, 1}), counted = b.Out({}), sum = b.Out({1, 1});
  std::vector<int> inputs{count, x}, outputs{counted, sum};
  if (handle) {
    inputs.push_back(b.Out({}, kHandle));
    outputs.push_back(b.Out({}, kHandle));
    b.AddVariableHandle("", inputs.back());
  }
  b.AddControlFlow(kWhile, {1, 2}, inputs, outputs);
  b.End({sum});
  b.AddSubgraph("condition");
  const int asked = b.In({});
  b.In({1, 1});
  if (handle) b.In({}, kHandle);
  b.End({b.Op("LESS", {asked, b.Number(turns)}, {}, kBool)});
  b.AddSubgraph("body");
  const int i = b.In({});
  b.In({1, 1});
  std::vector<int> results{b.Op("ADD", {i, b.Number(1)}, {})};
  results.push_back(Summed(b, b.AddConstant("one", kFloat, {1, 1}, std::vector{1.0f})));
  if (handle) results.push_back(b.In({}, kHandle));
  b.End(results);
}

TEST(CalledStates, BeginAnewWithEachCall) {
  for (const int code : {kIf, kCase, kComposite}) {
    SCOPED_TRACE(code);
    Builder b;
    WriteCall(b, code);
    EXPECT_THAT(ThreeRuns(b), ElementsAre(1, 1, 1));
    EXPECT_THAT(ThreeRuns(b, true), ElementsAre(1, 2, 3));
  }
}

TEST(CalledStates, LastFromTurnToTurn) {
  Builder b;
  WriteLoop(b, 3, false);
  EXPECT_THAT(ThreeRuns(b), ElementsAre(3, 3, 3));
  EXPECT_THAT(ThreeRuns(b, true), ElementsAre(3, 6, 9));
}

TEST(CalledStates, OfLoopsOverHandlesBeginAnewWithEachTurn) {
  for (const bool preserve : {false, true}) {
    Builder b;
    WriteLoop(b, 3, true);
    EXPECT_THAT(ThreeRuns(b, preserve), ElementsAre(1, 1, 1));
  }
}

// y = x + how often it has run since it was prepared, as its node's data or one for all nodes.
int prepares = 0, runs_of_all = 0;
template <bool kOfNode>
tflite::TfLiteRegistration Counts() {
  tflite::TfLiteRegistration op{};
  op.init = [](tflite::TfLiteContext*, const char*, size_t) -> void* {
    return kOfNode ? new int(0) : nullptr;
  };
  op.free = [](tflite::TfLiteContext*, void* data) { delete static_cast<int*>(data); };
  op.prepare = [](tflite::TfLiteContext*, tflite::TfLiteNode* node) {
    ++prepares;
    if (kOfNode) *static_cast<int*>(node->user_data) = 0;
    return tflite::kTfLiteOk;
  };
  op.invoke = [](tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
    int& runs = kOfNode ? *static_cast<int*>(node->user_data) : runs_of_all;
    context->tensors[node->outputs->data[0]].data.f[0] =
        context->tensors[node->inputs->data[0]].data.f[0] + static_cast<float>(++runs);
    return tflite::kTfLiteOk;
  };
  return op;
}

// Nodes without data of their own have nothing to forget, and are not prepared again.
TEST(CalledStates, OfOperatorsOfAnApplicationBeginWhereTheyArePrepared) {
  for (const bool of_node : {false, true}) {
    SCOPED_TRACE(of_node);
    OpResolver resolver = OpResolver::WithBuiltins();
    resolver.AddCustom("Counts", of_node ? Counts<true>() : Counts<false>());
    Builder b;
    const int x = b.In({1}), y = b.Out({1});
    b.AddComposite("test.counts", {}, 1, {x}, {y});
    b.End({y});
    b.AddSubgraph("body");
    const int u = b.In({1}), v = b.Out({1});
    b.AddCustomOperator("Counts", {}, {u}, {v});
    b.End({v});
    prepares = runs_of_all = 0;
    const std::vector<float> results = ThreeRuns(b, false, resolver);
    if (of_node) {
      EXPECT_THAT(results, ElementsAre(2, 2, 2));
      EXPECT_EQ(prepares, 4);
    } else {
      EXPECT_THAT(results, ElementsAre(2, 3, 4));
      EXPECT_EQ(prepares, 1);
    }
  }
}

// A loop inside runs the condition of the loop around it, on more values than that.
TEST(While, MayShareItsConditionWithALoopInside) {
  for (const int length : {2, 99}) {
    Builder b;
    const int x = b.In({2}), y = b.Out({2});
    b.AddControlFlow(kWhile, {1, 2}, {x}, {y});
    b.End({y});
    b.AddSubgraph("condition");
    const int axis = b.AddConstant("axis", kInt, {1}, std::vector<int32_t>{0});
    b.End({b.Op("LESS", {b.Op("REDUCE_MAX", {b.In({2}), axis}, {}), b.Number(5)}, {}, kBool)});
    b.AddSubgraph("body");
    const int u = b.In({2});
    const int threes = b.AddConstant("threes", kFloat, {length}, std::vector<float>(length, 3));
    const int fives = b.Out({length});
    b.AddControlFlow(kWhile, {1, 3}, {threes}, {fives});
    const int begin = b.AddConstant("begin", kInt, {1}, std::vector<int32_t>{0});
    const int size = b.AddConstant("size", kInt, {1}, std::vector<int32_t>{2});
    const int some = b.Op("SLICE", {fives, begin, size}, {2});
    b.End({b.Op("ADD", {u, b.Op("MUL", {some, b.Number(0.2f)}, {2})}, {2})});
    b.AddSubgraph("inner body");
    b.End({b.Op("ADD", {b.In({length}), b.Number(1)}, {length})});
    const auto interpreter = OpenBuiltin(b);
    ASSERT_OK(interpreter->AllocateTensors());
    for (const float start : {1.0f, 3.0f}) {
      EXPECT_THAT(RunOn(*interpreter, {start, start}), ElementsAre(5, 5)) << length;
    }
  }
}

}  // namespace
}  // namespace fuselite::interpreter
