// What is known, and what is refused, before anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/generate/generate.h"
#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/operator.h"
#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A shape that follows from other shapes is known before anything runs.
TEST(PrepareTest, KnowsShapesThatFollowFromShapes) {
  ModelWriter writer;
  const int x = writer.AddTensor("x", DataType::kFloat32, {2, 3});
  const int y = writer.AddTensor("y", DataType::kFloat32, {6});
  const int shape = writer.AddTensor("shape", DataType::kInt32, {2});
  const int out = writer.AddTensor("out", DataType::kFloat32, {2, 3});
  kernels::Params params;
  params.as<kernels::ShapeParams>().out_type = DataType::kInt32;
  writer.AddOperator(*kernels::FindOperator("SHAPE"), params, {x}, {shape});
  writer.AddOperator(*kernels::FindOperator("RESHAPE"), {y, shape}, {out});
  writer.SetInputs({x, y});
  writer.SetOutputs({out});
  const auto interpreter = OpenBuiltin(writer);
  for (const Shape& given : {Shape{2, 3}, Shape{3, 2}}) {
    ASSERT_OK(interpreter->ResizeInput(0, given.dims()));
    ASSERT_OK(interpreter->AllocateTensors());
    EXPECT_EQ(interpreter->output(0).shape, given);
    EXPECT_NE(interpreter->output(0).data, nullptr);
  }
}

// So is one that is made of constants.
TEST(PrepareTest, KnowsShapesThatFollowFromConstants) {
  ModelWriter writer;
  const int x = writer.AddTensor("x", DataType::kFloat32, {6});
  const int size = writer.AddConstant<int32_t>("size", DataType::kInt32, {2}, {3, 2});
  const int axis = writer.AddConstant<int32_t>("axis", DataType::kInt32, {1}, {0});
  const int turned = writer.AddTensor("turned", DataType::kInt32, {2});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 1});
  writer.AddOperator(*kernels::FindOperator("REVERSE_V2"), {size, axis}, {turned});
  writer.AddOperator(*kernels::FindOperator("RESHAPE"), {x, turned}, {out});
  writer.SetInputs({x});
  writer.SetOutputs({out});
  const auto interpreter = OpenBuiltin(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(interpreter->output(0).shape, Shape({2, 3}));
  EXPECT_NE(interpreter->output(0).data, nullptr);
}

// An operator may have nothing to prepare; without anything to run, it is refused.
TEST(PrepareTest, OperatorsNeedNoPrepareToRun) {
  OpResolver resolver;
  resolver.AddAll(TestOperators());
  tflite::TfLiteRegistration op = resolver.FindCustom("AddOne", 1)->registration;
  op.prepare = nullptr;
  resolver.AddCustom("Unprepared", op);
  op.invoke = nullptr;
  resolver.AddCustom("Hollow", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  for (const char* name : {"Unprepared", "Hollow"}) {
    ModelWriter writer;
    WriteChain(writer, 1);
    writer.AddTensor("out", DataType::kFloat32, {2});
    writer.AddCustomOperator(name, {}, {1}, {2});
    writer.SetOutputs({2});
    auto interpreter = Open(writer, options);
    const Status status = interpreter->AllocateTensors();
    if (std::string(name) == "Hollow") {
      EXPECT_THAT(status.message(), HasSubstr("no functions that the interpreter can call"));
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(3, 4));
  }
}

// The version where it is not the first, and how operators are added where a custom one is missing.
TEST(PrepareTest, MissingOperatorsAreNamedByTheirVersions) {
  const OpResolver resolver = OpResolver::WithBuiltins();
  InterpreterOptions options;
  options.resolver = &resolver;
  const auto error = [&](bool custom, int version) {
    ModelWriter writer;
    for (int i = 0; i < 2; ++i) writer.AddTensor("t", DataType::kFloat32, {2});
    if (custom) writer.AddCustomOperator("Odd", {}, {0}, {1}, version);
    if (!custom) writer.AddOperator(tflite::kTfLiteBuiltinStablehloSort, {0}, {1}, version);
    writer.SetInputs({0});
    writer.SetOutputs({1});
    return Interpreter::Create(Load(writer), options).status().message();
  };
  const std::string missing = "operators not implemented in this interpreter: ";
  const std::string hint = "; docs/custom-operators.md says how to add custom operators";
  EXPECT_EQ(error(false, 1), missing + "STABLEHLO_SORT");
  EXPECT_EQ(error(false, 3), missing + "STABLEHLO_SORT version 3");
  EXPECT_EQ(error(true, 1), missing + "custom operator Odd" + hint);
  EXPECT_EQ(error(true, 2), missing + "custom operator Odd version 2" + hint);
}

// Another signature's graph may have what this build does not know; a graph that is called may not.
TEST(PrepareTest, GraphsThatDoNotRunMayLackOperators) {
  const auto open = [](bool called) {
    ModelWriter writer;
    const int condition = writer.AddTensor("c", DataType::kBool, {1});
    const int x = writer.AddTensor("x", DataType::kFloat32, {2});
    const int out = writer.AddTensor("out", DataType::kFloat32, {2});
    writer.AddOperator(*kernels::FindOperator("RELU"), {x}, {out});
    writer.SetInputs({condition, x});
    writer.SetOutputs({out});
    if (called) {
      const int chosen = writer.AddTensor("chosen", DataType::kFloat32, {2});
      writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 1}, {condition, x}, {chosen});
    }
    writer.AddSubgraph("other");
    const int in = writer.AddTensor("in", DataType::kFloat32, {2});
    const int odd = writer.AddTensor("odd", DataType::kFloat32, {2});
    writer.AddCustomOperator("Odd", {}, {in}, {odd});
    writer.SetInputs({in});
    writer.SetOutputs({odd});
    return Interpreter::Create(Load(writer), {});
  };
  EXPECT_THAT(open(true).status().message(), HasSubstr("custom operator Odd"));
  auto interpreter = open(false);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().ToString();
  ASSERT_OK((*interpreter)->AllocateTensors());
  ASSERT_OK((*interpreter)->Invoke());
}

// Values that nodes make of constants are there before anything runs, whatever is left out.
TEST(PrepareTest, KnowsValuesThatFollowFromConstants) {
  ModelWriter writer;
  const int x = writer.AddConstant<float>("x", DataType::kFloat32, {1, 2}, {1, 2});
  const int weights = writer.AddConstant<float>("w", DataType::kFloat32, {1, 2}, {3, 4});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 1});
  writer.AddOperator(*kernels::FindOperator("FULLY_CONNECTED"), {x, weights, -1}, {out});
  writer.SetOutputs({out});
  const auto interpreter = OpenBuiltin(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(Output(*interpreter), ElementsAre(11));
}

// What it carries of another maker is not called.
TEST(PrepareTest, OperatorsOfAnotherMakerAreHollow) {
  tflite::TfLiteOperator foreign{};
  foreign.prepare = [](tflite::TfLiteOpaqueContext*, tflite::TfLiteOpaqueNode*) {
    ADD_FAILURE() << "it was called";
    return tflite::kTfLiteOk;
  };
  tflite::TfLiteRegistration op{};
  op.registration_external = &foreign;
  OpResolver resolver;
  resolver.AddCustom("AddOne", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  ModelWriter writer;
  WriteChain(writer, 1);
  EXPECT_THAT(Open(writer, options)->AllocateTensors().message(),
              HasSubstr("no functions that the interpreter can call"));
}

// A kernel says with a status of its own that it lacks what it needs: a host may go on without it.
TEST(PrepareTest, WhatAKernelLacksIsUnsupported) {
  OpResolver resolver;
  tflite::TfLiteRegistration op = TestOperators().FindCustom("AddOne", 1)->registration;
  op.prepare = [](tflite::TfLiteContext* context, tflite::TfLiteNode*) {
    context->ReportError(context, "its tables are not here");
    return tflite::kTfLiteUnresolvedOps;
  };
  resolver.AddCustom("AddOne", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  ModelWriter writer;
  WriteChain(writer, 1);
  const Status status = Open(writer, options)->AllocateTensors();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), "node 0 custom operator AddOne: its tables are not here");
}

}  // namespace
}  // namespace fuselite::interpreter
