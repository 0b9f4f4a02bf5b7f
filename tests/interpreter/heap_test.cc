// What interpreters take from the heap: all of it is given back, and runs that change no shape take
// none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tflite/builtin_codes.h"
#include "tests/interpreter/test_graph.h"
#include "tests/runtime/counted_heap.h"

namespace fuselite::interpreter {
namespace {

using fuselite::testing::heap_counts;

constexpr DataType kFloat = DataType::kFloat32;

int Op(ModelWriter& writer, std::string_view name, std::vector<int> inputs, const Shape& shape,
       DataType type = kFloat) {
  const int out = writer.AddTensor(std::string(name), type, shape);
  writer.AddOperator(*kernels::FindOperator(name), std::move(inputs), {out});
  return out;
}

// x and y, float32[1], turn by turn until x has reached `turns`; a third value stays.
void WriteLoop(ModelWriter& writer, float turns) {
  const auto in = [&](int count) {
    std::vector<int> inputs;
    for (int i = 0; i < count; ++i) inputs.push_back(writer.AddTensor("in", kFloat, {1}));
    writer.SetInputs(inputs);
    return inputs;
  };
  const auto number = [&](float value) {
    return writer.AddConstant("number", kFloat, {1}, std::vector{value});
  };
  const std::vector<int> first = in(3);
  std::vector<int> last;
  for (int i = 0; i < 3; ++i) last.push_back(writer.AddTensor("out", kFloat, {1}));
  writer.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, first, last);
  writer.SetOutputs(last);
  writer.AddSubgraph("condition");
  const std::vector<int> asked = in(3);
  writer.SetOutputs({Op(writer, "LESS", {asked[0], number(turns)}, {1}, DataType::kBool)});
  writer.AddSubgraph("body");
  const std::vector<int> given = in(3);
  writer.SetOutputs({Op(writer, "ADD", {given[0], number(1)}, {1}),
                     Op(writer, "MUL", {given[1], given[2]}, {1}), given[2]});
}

// Scales of each kind, an open size, a variable, strings, a constant that a node makes, shapes that
// a run finds, and what runs subgraphs.
std::vector<std::byte> EverythingThatIsHeld() {
  ModelWriter writer;
  WriteLoop(writer, 3);
  writer.AddSubgraph("all");
  const int x = writer.AddTensor("x", kFloat, {1, 4}),
            open = writer.AddTensor({"open", kFloat, {1, 3}, {}, {}, false, {-1, 3}});
  const int chosen = writer.AddTensor("chosen", DataType::kBool, {1});
  writer.SetInputs({x, open, chosen});
  const int weights = writer.AddConstant<int8_t>(
      "weights", DataType::kInt8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, {{0.5f, 0.25f}, {0, 0}, 0});
  const int scales = writer.AddTensor("scales", DataType::kFloat16, {2, 1});
  TensorSpec blocks{.name = "blocks", .type = DataType::kInt4, .shape = {2, 32}};
  blocks.blockwise = {.scales = scales, .zero_points = -1, .block_size = 32, .axis = 1};
  writer.AddTensor(blocks);
  writer.AddTensor({"state", kFloat, {3}, {}, {}, true, {}});
  const int words =
      writer.AddConstant<int32_t>("words", DataType::kString, {2}, {2, 16, 17, 20, 0x64636261});
  const int layer = Op(writer, "FULLY_CONNECTED", {x, weights, -1}, {1, 2});
  const int two = writer.AddConstant<int32_t>("two", DataType::kInt32, {1}, {2});
  const int made = Op(writer, "NEG", {two}, {1}, DataType::kInt32);
  const int shape = Op(writer, "CAST", {layer}, {1, 2}, DataType::kInt32);
  const int rank = Op(writer, "RESHAPE", {shape, two}, {2}, DataType::kInt32);
  const int scalar = writer.AddConstant<int32_t>("scalar", DataType::kInt32, {}, {2});
  const int filled = Op(writer, "FILL", {Op(writer, "ABS", {rank}, {2}, DataType::kInt32), scalar},
                        {1, 1}, DataType::kInt32);
  const int turned = Op(writer, "NEG", {filled}, {1, 1}, DataType::kInt32);
  const int twice = Op(writer, "TILE", {words, two}, {4}, DataType::kString);
  const int branch = writer.AddTensor("branch", kFloat, {1, 3});
  writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {4, 4}, {chosen, open}, {branch});
  const int handle = writer.AddTensor("handle", DataType::kResource, Shape());
  writer.AddVariableHandle("v", handle);
  const int kept = writer.AddTensor("kept", kFloat, {1, 4});
  writer.AddOperator(tflite::kTfLiteBuiltinAssignVariable, {handle, x}, {});
  writer.AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {kept});
  writer.SetOutputs({turned, twice, branch, kept, made});
  writer.AddSignature("all", {{"x", x}}, {{"y", turned}});
  writer.AddSubgraph("branch");
  const int value = writer.AddTensor("value", kFloat, {1, 3});
  writer.SetInputs({value});
  writer.SetOutputs({Op(writer, "TANH", {value}, {1, 3})});
  return writer.Finish();
}

void RunEverything(const std::vector<std::byte>& file) {
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  InterpreterOptions options;
  options.signature = "all";
  const auto interpreter = *Interpreter::Create(*model, options);
  for (const int32_t rows : {1, 2, 1}) {
    ASSERT_OK(interpreter->ResizeInput(1, Shape({rows, 3}).dims()));
    ASSERT_OK(interpreter->AllocateTensors());
    for (const float value : {1.0f, 2.0f, 2.0f}) {
      std::fill_n(static_cast<float*>(interpreter->input(0).data), 4, value);
      ASSERT_OK(interpreter->Invoke());
    }
  }
}

void RunWithDelegates() {
  ModelWriter writer;
  WriteChain(writer, 4);
  TestDelegate first, second;
  first.claims = {0, 1};
  second.claims = {3};
  const auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&first.delegate));
  ASSERT_OK(interpreter->ApplyDelegate(&second.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->ResizeInput(0, std::vector{3}));
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->Invoke());
}

TEST(Heap, HasAllBackWhenAnInterpreterIsGone) {
  const std::vector<std::byte> file = EverythingThatIsHeld();
  // Tables that a process makes once are there after the first one.
  RunEverything(file);
  RunWithDelegates();
  const int64_t before = heap_counts.held;
  RunEverything(file);
  EXPECT_EQ(heap_counts.held, before);
  RunWithDelegates();
  EXPECT_EQ(heap_counts.held, before);
}

// How often a run takes memory, after two others.
int64_t TakenByARun(Interpreter& interpreter, float x) {
  int64_t taken = 0;
  for (int run = 0; run < 3; ++run) {
    *static_cast<float*>(interpreter.input(0).data) = x;
    taken = heap_counts.taken;
    const Status status = interpreter.Invoke();
    taken = heap_counts.taken - taken;
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return taken;
}

TEST(Heap, IsNotAskedByRunsOfFixedShapes) {
  ModelWriter writer;
  const int x = writer.AddTensor("x", kFloat, {1, 4});
  writer.SetInputs({x});
  const int made =
      Op(writer, "NEG", {writer.AddConstant("c", kFloat, {4}, std::vector(4, 1.0f))}, {4});
  const int sum = Op(writer, "ADD", {x, made}, {1, 4});
  // The reference wants scratch for a SOFTMAX.
  const int soft = Op(writer, "SOFTMAX", {sum}, {1, 4});
  const int axis = writer.AddConstant<int32_t>("axis", DataType::kInt32, {1}, {1});
  writer.SetOutputs({Op(writer, "SUM", {soft, axis}, {1})});
  const auto interpreter = OpenBuiltin(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(TakenByARun(*interpreter, 1), 0);
}

// Their values change places, and are copied into no new one.
TEST(Heap, IsAskedByALoopAsOftenWhateverItsTurns) {
  std::vector<int64_t> taken;
  for (const float turns : {1.0f, 100.0f}) {
    ModelWriter writer;
    WriteLoop(writer, turns);
    const auto interpreter = OpenBuiltin(writer);
    ASSERT_OK(interpreter->AllocateTensors());
    taken.push_back(TakenByARun(*interpreter, 0));
  }
  EXPECT_EQ(taken[0], taken[1]);
}

// A node behind others whose shapes the run finds is prepared for those that it has not just seen.
TEST(Heap, IsAskedLessByARunOfTheShapesBefore) {
  ModelWriter writer;
  const int x = writer.AddTensor("x", kFloat, {1}), found = writer.AddTensor("found", kFloat, {1});
  writer.AddCustomOperator("Count", {}, {x}, {found});
  writer.SetInputs({x});
  writer.SetOutputs({Op(writer, "NEG", {Op(writer, "ABS", {found}, {1})}, {1})});
  const auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  const int64_t same = TakenByARun(*interpreter, 5);
  const int64_t before = heap_counts.taken;
  *static_cast<float*>(interpreter->input(0).data) = 7;
  ASSERT_OK(interpreter->Invoke());
  EXPECT_LT(same, heap_counts.taken - before);
}

}  // namespace
}  // namespace fuselite::interpreter
