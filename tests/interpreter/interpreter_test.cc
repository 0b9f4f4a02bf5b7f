#include "interpreter/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const kernels::OperatorDef& Op(const char* name) { return *kernels::FindOperator(name); }

TEST(InterpreterTest, RunsBuiltinOperators) {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {1, 3});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 3});
  kernels::Params params;
  kernels::SetDefaults(Op("SOFTMAX").fields, params.data());
  params.as<float>() = 2.0f;  // beta
  writer.AddOperator(Op("SOFTMAX"), params, {in}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  const std::vector<float> result = RunOn(*interpreter, {0.0f, 0.5f, 1.0f});
  const float sum = 1 + std::exp(1.0f) + std::exp(2.0f);
  EXPECT_NEAR(result[0], 1 / sum, 1e-6);
  EXPECT_NEAR(result[2], std::exp(2.0f) / sum, 1e-6);
}

TEST(InterpreterTest, TellsItsTensors) {
  ModelWriter writer;
  const int in =
      writer.AddTensor({"in", DataType::kUInt8, {1, 3}, {{0.5f}, {7}, 0}, {}, false, {-1, 3}});
  const int weights = writer.AddConstant<float>("w", DataType::kFloat32, {2}, {1, 2});
  writer.SetInputs({in});
  writer.SetOutputs({in});
  writer.AddSignature("first", {{"x", in}}, {{"y", in}});
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  const TensorView view = interpreter->input(0);
  EXPECT_EQ(view.name, "in");
  EXPECT_EQ(view.type, DataType::kUInt8);
  EXPECT_EQ(view.shape, (Shape{1, 3}));
  EXPECT_THAT(view.shape_signature, ElementsAre(-1, 3));
  EXPECT_EQ(view.quantization.zero_point(), 7);
  EXPECT_EQ(view.bytes, 3u);
  EXPECT_NE(view.data, nullptr);
  EXPECT_TRUE(interpreter->tensor(weights).constant);
  EXPECT_EQ(interpreter->FindTensor("w"), weights);
  EXPECT_EQ(interpreter->FindTensor("nobody"), -1);
  const Signature* signature = interpreter->FindSignature("first");
  ASSERT_NE(signature, nullptr);
  EXPECT_EQ(Interpreter::FindInput(*signature, "x"), in);
  EXPECT_EQ(Interpreter::FindOutput(*signature, "x"), -1);
  EXPECT_EQ(interpreter->FindSignature("second"), nullptr);
}

TEST(InterpreterTest, NamesOperatorsThatNobodyImplements) {
  ModelWriter writer;
  WriteChain(writer, 2);
  writer.AddTensor("more", DataType::kFloat32, {2});
  writer.AddOperator(tflite::kTfLiteBuiltinStablehloSort, {0}, {3});
  const OpResolver resolver = OpResolver::WithBuiltins();
  InterpreterOptions options;
  options.resolver = &resolver;
  const auto interpreter = Interpreter::Create(Load(writer), options);
  EXPECT_EQ(interpreter.status().ToString(),
            "unsupported: operators not implemented in this interpreter: STABLEHLO_SORT, custom "
            "operator AddOne; docs/custom-operators.md says how to add custom operators");
}

TEST(InterpreterTest, ResolverPrefersWhatWasAdded) {
  OpResolver resolver = OpResolver::WithBuiltins();
  EXPECT_NE(resolver.FindBuiltin(tflite::kTfLiteBuiltinSoftmax, 1)->def, nullptr);
  EXPECT_EQ(resolver.FindBuiltin(tflite::kTfLiteBuiltinStablehloSort, 1), nullptr);
  tflite::TfLiteRegistration registration{};
  registration.prepare = [](tflite::TfLiteContext*, tflite::TfLiteNode*) {
    return tflite::kTfLiteError;
  };
  OpResolver added;
  added.AddBuiltin(tflite::kTfLiteBuiltinSoftmax, registration, 1, 2);
  added.AddCustom("Mine", registration);
  EXPECT_EQ(added.FindBuiltin(tflite::kTfLiteBuiltinConv2d, 1), nullptr);
  resolver.AddAll(added);
  EXPECT_EQ(resolver.FindBuiltin(tflite::kTfLiteBuiltinSoftmax, 2)->def, nullptr);
  EXPECT_EQ(resolver.FindBuiltin(tflite::kTfLiteBuiltinSoftmax, 2)->registration.version, 2);
  EXPECT_NE(resolver.FindBuiltin(tflite::kTfLiteBuiltinSoftmax, 3)->def, nullptr);
  ASSERT_NE(resolver.FindCustom("Mine", 1), nullptr);
  EXPECT_STREQ(resolver.FindCustom("Mine", 1)->registration.custom_name, "Mine");
  EXPECT_EQ(resolver.FindCustom("Mine", 2), nullptr);
  EXPECT_NE(resolver.FindCustom("TFLite_Detection_PostProcess", 1), nullptr);
  EXPECT_EQ(resolver.FindCustom("TFLite_Detection", 1), nullptr);
}

TEST(InterpreterTest, InvokeWantsMemory) {
  ModelWriter writer;
  WriteChain(writer, 1);
  auto interpreter = Open(writer);
  EXPECT_THAT(interpreter->Invoke().message(), HasSubstr("allocate them before you invoke"));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(2, 3));
}

TEST(InterpreterTest, ResizesInputs) {
  ModelWriter writer;
  WriteChain(writer, 3);
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(4, 5));
  const int32_t dims[] = {4};
  ASSERT_OK(interpreter->ResizeInput(0, dims));
  EXPECT_FALSE(interpreter->Invoke().ok());
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(interpreter->output(0).shape, (Shape{4}));
  EXPECT_THAT(RunOn(*interpreter, {1, 2, 3, 4}), ElementsAre(4, 5, 6, 7));
  const int32_t empty[] = {0};
  ASSERT_OK(interpreter->ResizeInput(0, empty));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_NE(interpreter->input(0).data, nullptr);
  EXPECT_THAT(RunOn(*interpreter, {}), ElementsAre());
}

TEST(InterpreterTest, RefusesImpossibleShapes) {
  ModelWriter writer;
  WriteChain(writer, 1);
  auto interpreter = Open(writer);
  const int32_t negative[] = {-1};
  const int32_t huge[] = {2147483647, 2147483647};
  const std::vector<int32_t> deep(17, 1);
  EXPECT_THAT(interpreter->ResizeInput(0, negative).message(), HasSubstr("is -1"));
  EXPECT_EQ(interpreter->ResizeInput(0, huge).code(), StatusCode::kOutOfMemory);
  EXPECT_FALSE(interpreter->ResizeInput(0, deep).ok());
  EXPECT_THAT(interpreter->ResizeInput(3, negative).message(), HasSubstr("there is no input 3"));
  const int32_t large[] = {2147483647, 100000};  // fits an address space, hardly a machine
  ASSERT_OK(interpreter->ResizeInput(0, large));
  EXPECT_EQ(interpreter->AllocateTensors().code(), StatusCode::kOutOfMemory);
  const int32_t small[] = {2};
  ASSERT_OK(interpreter->ResizeInput(0, small));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(2, 3));
}

TEST(InterpreterTest, ReusesMemoryOfValuesThatAreDone) {
  static constexpr int kLength = 20;
  const auto addresses = [](bool preserve) {
    ModelWriter writer;
    WriteChain(writer, kLength);
    InterpreterOptions options;
    options.preserve_all_tensors = preserve;
    auto interpreter = Open(writer, options);
    EXPECT_TRUE(interpreter->AllocateTensors().ok());
    EXPECT_THAT(RunOn(*interpreter, {0, 1}), ElementsAre(kLength, kLength + 1));
    EXPECT_THAT(RunOn(*interpreter, {0, 1}), ElementsAre(kLength, kLength + 1));
    if (preserve) {
      EXPECT_EQ(static_cast<const float*>(interpreter->tensor(7).data)[0], 7);
    }
    // What the caller sees keeps its memory.
    EXPECT_EQ(static_cast<const float*>(interpreter->input(0).data)[1], 1);
    std::set<const void*> seen;
    for (int i = 0; i <= kLength; ++i) seen.insert(interpreter->tensor(i).data);
    return seen.size();
  };
  EXPECT_EQ(addresses(true), kLength + 1u);
  EXPECT_LE(addresses(false), 5u);
}

TEST(InterpreterTest, FollowsShapesThatDependOnValues) {
  // in -> Count -> AddOne -> Count -> AddOne -> out
  ModelWriter writer;
  for (int i = 0; i < 5; ++i) writer.AddTensor("t" + std::to_string(i), DataType::kFloat32, {2});
  writer.AddCustomOperator("Count", {}, {0}, {1});
  writer.AddCustomOperator("AddOne", {}, {1}, {2});
  writer.AddCustomOperator("Count", {}, {2}, {3});
  writer.AddCustomOperator("AddOne", {}, {3}, {4});
  writer.SetInputs({0});
  writer.SetOutputs({2, 4});
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  for (float count : {3.0f, 3.0f, 7.0f, 1.0f, 3.0f}) {
    const std::vector<float> first = RunOn(*interpreter, {count, 0});
    EXPECT_EQ(first, std::vector<float>(static_cast<size_t>(count), 1.0f));
    EXPECT_THAT(Output(*interpreter, 1), ElementsAre(1));
  }
}

TEST(InterpreterTest, RunsBuiltinOperatorsOnComputedShapes) {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {2, 3});
  const int shape = writer.AddTensor("shape", DataType::kInt32, {2});
  const int reshaped = writer.AddTensor("reshaped", DataType::kFloat32, {1, 1});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 1});
  writer.AddOperator(Op("RESHAPE"), {in, shape}, {reshaped});
  writer.AddOperator(Op("SOFTMAX"), {reshaped}, {out});
  writer.SetInputs({in, shape});
  writer.SetOutputs({out});
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  for (const auto& [rows, columns] : {std::pair{3, 2}, {1, 6}, {6, 1}}) {
    auto* dims = static_cast<int32_t*>(interpreter->input(1).data);
    dims[0] = rows;
    dims[1] = columns;
    const std::vector<float> result = RunOn(*interpreter, std::vector<float>(6, 0.5f));
    EXPECT_EQ(interpreter->output(0).shape, (Shape{rows, columns}));
    for (float value : result) EXPECT_NEAR(value, 1.0f / static_cast<float>(columns), 1e-6);
  }
  auto* dims = static_cast<int32_t*>(interpreter->input(1).data);
  dims[0] = 5;
  EXPECT_THAT(interpreter->Invoke().message(), HasSubstr("node 0 RESHAPE"));
  dims[0] = 6;
  ASSERT_OK(interpreter->Invoke());
}

TEST(InterpreterTest, OutputsLieInTheirInputsMemoryWhereAskedTo) {
  ModelWriter writer;
  WriteChain(writer, 2);
  auto interpreter = Open(writer);
  EXPECT_FALSE(interpreter->ShareMemory(0, 0).ok()) << "nothing is allocated";
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->ShareMemory(0, 0));
  EXPECT_EQ(interpreter->input(0).data, interpreter->output(0).data);
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(3, 4));

  ModelWriter other;  // a constant as an output, and one of another size
  const int x = other.AddTensor("x", DataType::kFloat32, {2});
  const int wide = other.AddTensor("wide", DataType::kFloat32, {3});
  const int y = other.AddTensor("y", DataType::kFloat32, {3});
  other.AddCustomOperator("AddOne", {}, {wide}, {y});
  other.SetInputs({x, wide});
  other.SetOutputs({other.AddConstant("c", DataType::kFloat32, {2}, std::vector{1.0f, 2.0f}), y});
  interpreter = Open(other);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_FALSE(interpreter->ShareMemory(0, 0).ok());
  EXPECT_FALSE(interpreter->ShareMemory(0, 1).ok());
  EXPECT_TRUE(interpreter->ShareMemory(1, 1).ok());
}

TEST(InterpreterTest, ErrorsNameTheNode) {
  ModelWriter writer;
  WriteChain(writer, 1);
  writer.AddTensor("late", DataType::kFloat32, {2});
  writer.AddCustomOperator("Fails", {}, {1}, {2});
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(interpreter->Invoke().message(), "node 1 custom operator Fails: failed as asked");
}

// A node does not meet a tensor that an operator has left without memory.
TEST(InterpreterTest, InputsHaveMemory) {
  static bool named, empty;
  OpResolver resolver;
  resolver.AddAll(TestOperators());
  tflite::TfLiteRegistration op = resolver.FindCustom("AddOne", 1)->registration;
  op.invoke = [](tflite::TfLiteContext*, tflite::TfLiteNode*) { return tflite::kTfLiteOk; };
  resolver.AddCustom("Nothing", op);
  op.invoke = [](tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
    tflite::TfLiteTensor& out = context->tensors[node->outputs->data[0]];
    out.data.raw = nullptr;
    if (!named) out.name = nullptr;
    if (empty) out.bytes = 0;
    return tflite::kTfLiteOk;
  };
  resolver.AddCustom("Loses", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  for (const auto& [with_name, without_elements] :
       {std::pair(true, false), {false, false}, {true, true}}) {
    named = with_name;
    empty = without_elements;
    ModelWriter writer;
    for (const char* name : {"in", "lost", "out"}) writer.AddTensor(name, DataType::kFloat32, {2});
    writer.AddCustomOperator("Loses", {}, {0}, {1});
    writer.AddCustomOperator("Nothing", {}, {1}, {2});
    writer.SetInputs({0});
    writer.SetOutputs({2});
    auto interpreter = Open(writer, options);
    ASSERT_OK(interpreter->AllocateTensors());
    const std::string message(interpreter->Invoke().message());
    EXPECT_EQ(message, empty ? ""
                             : "node 1 custom operator Nothing: its input tensor 1 \"" +
                                   std::string(named ? "lost" : "") + "\" has no memory");
  }
}

// What nobody keeps cannot be fetched: it is what lies there.
TEST(InterpreterTest, StaleValuesWithoutADelegateAreTaken) {
  OpResolver resolver;
  resolver.AddAll(TestOperators());
  tflite::TfLiteRegistration op = resolver.FindCustom("AddOne", 1)->registration;
  static const auto add_one = op.invoke;
  op.invoke = [](tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
    context->tensors[node->outputs->data[0]].data_is_stale = true;
    return add_one(context, node);
  };
  resolver.AddCustom("Stale", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  ModelWriter writer;
  for (const char* name : {"in", "between", "out"}) writer.AddTensor(name, DataType::kFloat32, {2});
  writer.AddCustomOperator("Stale", {}, {0}, {1});
  writer.AddCustomOperator("Stale", {}, {1}, {2});
  writer.SetInputs({0});
  writer.SetOutputs({2});
  auto interpreter = Open(writer, options);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(3, 4));
}

TEST(InterpreterTest, RecordsTimes) {
  ModelWriter writer;
  WriteChain(writer, 3);
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  RunOn(*interpreter, {0, 0});
  EXPECT_TRUE(interpreter->TakeEvents().empty());
  interpreter->SetProfiling(true);
  RunOn(*interpreter, {0, 0});
  RunOn(*interpreter, {0, 0});
  const std::vector<NodeEvent> events = interpreter->TakeEvents();
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[4].node, 1);
  EXPECT_EQ(events[4].name, "custom operator AddOne");
  EXPECT_GE(events[1].start_ns, events[0].start_ns + events[0].duration_ns);
  EXPECT_TRUE(interpreter->TakeEvents().empty());
}

// A loop that ends only when it is told to.
TEST(InterpreterTest, CanBeCancelled) {
  ModelWriter writer;
  writer.AddTensor("in", DataType::kBool, {1});
  writer.AddTensor("out", DataType::kBool, {1});
  writer.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {0}, {1});
  writer.SetInputs({0});
  writer.SetOutputs({1});
  for (const char* name : {"condition", "body"}) {
    writer.AddSubgraph(name);
    writer.AddTensor("in", DataType::kBool, {1});
    writer.AddTensor("out", DataType::kBool, {1});
    const int shape = writer.AddConstant<int32_t>("shape", DataType::kInt32, {1}, {1});
    writer.AddOperator(Op("RESHAPE"), {0, shape}, {1});
    writer.SetInputs({0});
    writer.SetOutputs({1});
  }
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  *static_cast<bool*>(interpreter->input(0).data) = false;
  ASSERT_OK(interpreter->Invoke());
  *static_cast<bool*>(interpreter->input(0).data) = true;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    interpreter->Cancel();
  });
  EXPECT_EQ(interpreter->Invoke().code(), StatusCode::kCancelled);
  canceller.join();
  *static_cast<bool*>(interpreter->input(0).data) = false;
  EXPECT_TRUE(interpreter->Invoke().ok());
}

TEST(InterpreterTest, BranchesRunTheSubgraphThatTheConditionNames) {
  ModelWriter writer;
  writer.AddTensor("which", DataType::kBool, {1});
  writer.AddTensor("in", DataType::kFloat32, {2});
  writer.AddTensor("out", DataType::kFloat32, {2});
  writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {0, 1}, {2});
  writer.SetInputs({1, 0});
  writer.SetOutputs({2});
  for (int length : {1, 3}) {
    writer.AddSubgraph("branch");
    WriteChain(writer, length);
  }
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  *static_cast<bool*>(interpreter->input(1).data) = true;
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(2, 3));
  *static_cast<bool*>(interpreter->input(1).data) = false;
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(4, 5));
}

TEST(InterpreterTest, InstancesOfOneModelAreIndependent) {
  ModelWriter writer;
  WriteChain(writer, 50);
  const auto model = Load(writer);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      InterpreterOptions options;
      options.resolver = &TestOperators();
      auto interpreter = Interpreter::Create(model, options);
      if (!interpreter.ok() || !(*interpreter)->AllocateTensors().ok()) return;
      for (int round = 0; round < 50; ++round) {
        const auto value = static_cast<float>(t * 100 + round);
        right +=
            RunOn(**interpreter, {value, -value}) == std::vector<float>{value + 50, 50 - value};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace fuselite::interpreter
