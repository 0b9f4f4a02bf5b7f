// What is known, and what is refused, before anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/generate/generate.h"
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
