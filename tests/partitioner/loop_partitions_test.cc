// Loops beside other nodes, of bodies that the delegate takes in part, over what nodes make ahead
// of the run; and operators that keep a state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace interpreter;
using namespace testing;

// x -> before -> WHILE of `turns` turns -> after, with `inside` in the body.
void WriteLoop(Builder& b, int32_t turns, const char* inside) {
  const Shape shape = {1, 8};
  const int x = b.In(shape), from = b.Op("NEG", {x}, shape);
  const int count = b.AddTensor("count", kInt, Shape()), last = b.AddTensor("last", kFloat, shape);
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), from}, {count, last});
  b.End({b.Op("TANH", {b.Op("ADD", {last, from}, shape)}, shape), count});
  b.Below(turns, {shape});
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), value = b.In(shape);
  b.End({b.Next(turn), b.Op(inside, {b.Dense(value, shape, 8)}, shape)});
}

// Turns are computed at once only where the delegate takes the whole body.
TEST(LoopPartition, OfABodyThatIsOursInPart) {
  for (const int32_t turns : {0, 1, 5}) {
    Builder b;
    WriteLoop(b, turns, "SIN");
    Options options = BestOptions();
    options.ops_deny = {"SIN"};
    ExpectDelegateAgrees(b, options);
  }
}

TEST(LoopPartition, ShapesWhatIsBehindTheLoopBeforeTheRun) {
  Builder b;
  WriteLoop(b, 3, "TANH");
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Delegate delegate(BestOptions());
  const std::unique_ptr<Interpreter> interpreter = *Interpreter::Create(*model);
  ASSERT_TRUE(interpreter->ApplyDelegate(delegate.c_struct()).ok());
  EXPECT_THAT(interpreter->Plan(), ::testing::SizeIs(1));
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  for (const int i : {0, 1}) EXPECT_NE(interpreter->output(i).data, nullptr) << i;
  EXPECT_EQ(interpreter->output(0).shape, Shape({1, 8}));
}

// The value grows with each turn: what is behind is shaped by the run, in each run anew.
TEST(LoopPartition, LeavesShapesToTheRunThatTurnsChange) {
  Builder b;
  const int x = b.In({1, 2}), count = b.In(Shape(), kInt);
  const int turns = b.AddTensor("count", kInt, Shape()), last = b.AddTensor("last", kFloat, {1, 2});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {count, b.Op("NEG", {x}, {1, 2})},
                   {turns, last});
  b.End({b.Op("ABS", {last}, {1, 2}), turns});
  b.Below(3, {{1, 2}});
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), value = b.In({1, 2});
  b.End({b.Next(turn), b.Op("CONCATENATION", {value, value}, {2, 2})});
  ExpectDelegateAgrees(b, BestOptions(), 5);
}

// The host's kernel reads it where the host has it, before the run as well.
TEST(LoopPartition, OverAConstantThatANodeMakes) {
  Builder b;
  const int x = b.In({1, 8}), made = b.Op("NEG", {b.Weights({1, 8})}, {1, 8});
  const int count = b.AddTensor("count", kInt, Shape()), last = b.AddTensor("last", kFloat, {1, 8});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), made}, {count, last});
  b.End({b.Op("ADD", {b.Dense(x, {1, 8}, 8), last}, {1, 8}), b.Op("SUB", {x, made}, {1, 8})});
  b.Below(3, {{1, 8}});
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), value = b.In({1, 8});
  b.End({b.Next(turn), b.Op("TANH", {value}, {1, 8})});
  ExpectDelegateAgrees(b);
}

// Several loops, of which each counts other values, with nodes between them.
TEST(LoopPartition, OfLoopsInARow) {
  Builder b;
  int x = b.In({1, 8});
  std::vector<int> outputs;
  for (int i = 0; i < 2; ++i) {
    const int count = b.AddTensor("count", kInt, Shape()),
              last = b.AddTensor("last", kFloat, {1, 8});
    b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1 + 2 * i, 2 + 2 * i}, {b.Number(i), x},
                     {count, last});
    x = b.Op("COS", {last}, {1, 8});
    outputs.insert(outputs.end(), {x, count});
  }
  b.End(outputs);
  for (int i = 0; i < 2; ++i) {
    b.Below(4 + i, {{1, 8}});
    b.AddSubgraph("body");
    const int turn = b.In(Shape(), kInt), value = b.In({1, 8});
    b.End({b.Next(turn), b.Op(i == 0 ? "TANH" : "SIN", {b.Dense(value, {1, 8}, 8)}, {1, 8})});
  }
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

// Two loops of the host's kernel, alone in their partition or beside other nodes; the body of the
// second one reads beyond its rows where it is to fail.
Status RunTwoLoops(bool alone, bool fails, float* last_value) {
  Builder b;
  int value = b.In({1, 8});
  if (!alone) value = b.Op("ABS", {value}, {1, 8});
  for (int i = 0; i < 2; ++i) {
    const int last = b.AddTensor("last", kFloat, {1, 8});
    b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1 + 2 * i, 2 + 2 * i}, {b.Number(0), value},
                     {b.AddTensor("count", kInt, Shape()), last});
    value = last;
  }
  b.End({value});
  for (int i = 0; i < 2; ++i) {
    b.Below(3, {{1, 8}});
    b.AddSubgraph("body");
    const int turn = b.In(Shape(), kInt), before = b.In({1, 8});
    const int beyond = b.Op("ADD", {turn, b.Number(i == 1 && fails ? 100 : 0)}, Shape(), kInt);
    const int row = b.Op("GATHER", {b.Weights({4, 8}), beyond}, {8});
    b.End({b.Next(turn), b.Op("ADD", {before, row}, {1, 8})});
  }
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  if (!model.ok()) return model.status();
  Delegate delegate(BestOptions());
  const std::unique_ptr<Interpreter> interpreter = *Interpreter::Create(*model);
  FUSELITE_RETURN_IF_ERROR(interpreter->ApplyDelegate(delegate.c_struct()));
  FUSELITE_RETURN_IF_ERROR(interpreter->AllocateTensors());
  std::fill_n(static_cast<float*>(interpreter->input(0).data), 8, 1.0f);
  FUSELITE_RETURN_IF_ERROR(interpreter->Invoke());
  *last_value = static_cast<const float*>(interpreter->output(0).data)[0];
  return Status();
}

TEST(LoopPartition, RunsEachLoopAndFailsWithIt) {
  float values[2] = {};
  for (const bool alone : {false, true}) {
    const Status ran = RunTwoLoops(alone, false, &values[alone]);
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    EXPECT_FALSE(RunTwoLoops(alone, true, &values[alone]).ok());
  }
  EXPECT_EQ(values[0], values[1]);
}

// A row of `steps` steps and the state of `units`, which each run goes on from.
int Recurrent(Builder& b, int x, int32_t steps, int32_t units) {
  const int state = b.AddTensor({"state", kFloat, {1, units}, {}, {}, true, {}});
  const int weights = b.Weights({units, 4}), recurrent = b.Weights({units, units});
  return b.Op("UNIDIRECTIONAL_SEQUENCE_RNN", {x, weights, recurrent, b.Weights({units}), state},
              {1, steps, units});
}

TEST(State, OfAnOperatorIsTheHosts) {
  Builder b;
  const int x = b.In({1, 3, 4});
  b.End({b.Op("TANH", {Recurrent(b, b.Op("NEG", {x}, {1, 3, 4}), 3, 5)}, {1, 3, 5})});
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

// Behind a shape that the run finds.
TEST(State, OfAnOperatorInAPartThatWaits) {
  Builder b;
  const int x = b.In({1, 3, 4}), y = b.In({6}, kBool);
  const int state = Recurrent(b, x, 3, 5);
  const int places = b.Op("WHERE", {y}, {6, 1}, DataType::kInt64);
  const int again = Recurrent(b, b.Op("ABS", {x}, {1, 3, 4}), 3, 5);
  b.End({b.Op("NEG", {places}, {6, 1}, DataType::kInt64), b.Op("ADD", {state, again}, {1, 3, 5})});
  ExpectDelegateAgrees(b, BestOptions(), 5);
}

}  // namespace
}  // namespace fuselite::partitioner
