// Delegates in fuselite's own interpreter: partitions, failures, changes of shape.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kDynamic = tflite::kTfLiteDelegateFlagsAllowDynamicTensors;

TEST(DelegateTest, TakesAWholeChain) {
  ModelWriter writer;
  WriteChain(writer, 4);
  TestDelegate delegate;
  delegate.claims = {0, 1, 2, 3};
  {
    auto interpreter = Open(writer);
    ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
    EXPECT_THAT(interpreter->Plan(), ElementsAre("delegate Test"));
    ASSERT_EQ(delegate.partitions.size(), 1u);
    EXPECT_THAT(delegate.partitions[0].nodes, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(delegate.partitions[0].inputs, ElementsAre(0));
    EXPECT_THAT(delegate.partitions[0].outputs, ElementsAre(4));
    ASSERT_OK(interpreter->AllocateTensors());
    EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(5, 6));
    EXPECT_EQ(delegate.invokes, 1);
    EXPECT_EQ(delegate.kernels_alive, 1);
  }
  EXPECT_EQ(delegate.kernels_alive, 0);
}

TEST(DelegateTest, LeavesTheRestToTheHost) {
  ModelWriter writer;
  WriteChain(writer, 5);
  TestDelegate delegate;
  delegate.claims = {0, 1, 3};
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  EXPECT_THAT(interpreter->Plan(), ElementsAre("delegate Test", "custom operator AddOne",
                                               "delegate Test", "custom operator AddOne"));
  ASSERT_EQ(delegate.preview.size(), 2u);
  EXPECT_THAT(delegate.preview[0].nodes, ElementsAre(0, 1));
  EXPECT_THAT(delegate.preview[1].inputs, ElementsAre(3));
  EXPECT_THAT(delegate.preview[1].outputs, ElementsAre(4));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(6, 7));
  EXPECT_EQ(delegate.invokes, 2);
}

// Two branches of two nodes each; the second node of the first branch is not claimed.
TEST(DelegateTest, ClustersPastNodesOfTheHost) {
  ModelWriter writer;
  for (int i = 0; i < 6; ++i) writer.AddTensor("t" + std::to_string(i), DataType::kFloat32, {2});
  writer.AddCustomOperator("AddOne", {}, {0}, {1});
  writer.AddCustomOperator("AddOne", {}, {1}, {2});
  writer.AddCustomOperator("AddOne", {}, {0}, {3});
  writer.AddCustomOperator("AddOne", {}, {3}, {4});
  writer.AddCustomOperator("Sum", {}, {2, 4}, {5});
  writer.SetInputs({0});
  writer.SetOutputs({5});
  for (bool cluster : {true, false}) {
    TestDelegate delegate;
    delegate.claims = {0, 2, 3, 4};
    InterpreterOptions options;
    options.cluster_partitions = cluster;
    auto interpreter = Open(writer, options);
    ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
    ASSERT_EQ(delegate.partitions.size(), 2u);
    if (cluster) {
      EXPECT_THAT(delegate.partitions[0].nodes, ElementsAre(0, 2, 3));
      EXPECT_THAT(delegate.partitions[0].outputs, ElementsAre(1, 4));
    } else {
      EXPECT_THAT(delegate.partitions[0].nodes, ElementsAre(0));
    }
    ASSERT_OK(interpreter->AllocateTensors());
    EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(6, 8));
  }
}

TEST(DelegateTest, NothingClaimedChangesNothing) {
  ModelWriter writer;
  WriteChain(writer, 2);
  TestDelegate delegate;
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(3, 4));
  EXPECT_EQ(delegate.kernels_alive, 0);
}

TEST(DelegateTest, FailureGivesTheModelBack) {
  ModelWriter writer;
  WriteChain(writer, 3);
  for (bool in_kernel : {false, true}) {
    for (int64_t flags : {int64_t{0}, kDynamic}) {
      TestDelegate delegate;
      delegate.claims = {0, 1};
      delegate.delegate.flags = flags;
      (in_kernel ? delegate.fail_kernel_prepare : delegate.fail_prepare) = true;
      auto interpreter = Open(writer);
      ASSERT_OK(interpreter->AllocateTensors());
      const Status status = interpreter->ApplyDelegate(&delegate.delegate);
      EXPECT_THAT(status.message(), HasSubstr(in_kernel ? "does not want to" : "changed its mind"));
      EXPECT_EQ(delegate.kernels_alive, 0);
      EXPECT_EQ(interpreter->Plan().size(), 3u);
      EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(4, 5));
    }
  }
}

TEST(DelegateTest, OneFailureTakesAllDelegatesOff) {
  ModelWriter writer;
  WriteChain(writer, 3);
  TestDelegate first;
  first.claims = {0};
  TestDelegate second;
  second.claims = {2};
  second.fail_prepare = true;
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&first.delegate));
  EXPECT_EQ(first.kernels_alive, 1);
  EXPECT_FALSE(interpreter->ApplyDelegate(&second.delegate).ok());
  EXPECT_EQ(first.kernels_alive, 0);
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(4, 5));
}

TEST(DelegateTest, SeveralDelegatesShareAModel) {
  ModelWriter writer;
  WriteChain(writer, 4);
  TestDelegate first;
  first.claims = {0, 1};
  TestDelegate second;
  second.claims = {2, 3};
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&first.delegate));
  ASSERT_OK(interpreter->ApplyDelegate(&second.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(5, 6));
  EXPECT_EQ(first.invokes, 1);
  EXPECT_EQ(second.invokes, 1);
}

// A delegate for static shapes is taken off and put on again: its kernels are made anew.
TEST(DelegateTest, ResizeAppliesStaticDelegatesAgain) {
  ModelWriter writer;
  WriteChain(writer, 3);
  TestDelegate delegate;
  delegate.claims = {0, 1};
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(delegate.prepares, 1);
  const int32_t dims[] = {3};
  ASSERT_OK(interpreter->ResizeInput(0, dims));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(delegate.prepares, 2);
  EXPECT_EQ(delegate.kernels_alive, 1);
  EXPECT_THAT(RunOn(*interpreter, {1, 2, 3}), ElementsAre(4, 5, 6));
}

// One that takes dynamic shapes keeps its kernels; they are prepared again.
TEST(DelegateTest, ResizePreparesDynamicDelegatesAgain) {
  ModelWriter writer;
  WriteChain(writer, 3);
  TestDelegate delegate;
  delegate.claims = {0, 1};
  delegate.delegate.flags = kDynamic;
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  const int prepares = delegate.kernel_prepares;
  const int32_t dims[] = {3};
  ASSERT_OK(interpreter->ResizeInput(0, dims));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(delegate.prepares, 1);
  EXPECT_EQ(delegate.kernel_prepares, prepares + 1);
  EXPECT_THAT(RunOn(*interpreter, {1, 2, 3}), ElementsAre(4, 5, 6));
}

TEST(DelegateTest, DynamicGraphsAreForDynamicDelegates) {
  ModelWriter writer;
  for (int i = 0; i < 4; ++i) writer.AddTensor("t" + std::to_string(i), DataType::kFloat32, {2});
  writer.AddCustomOperator("AddOne", {}, {0}, {1});
  writer.AddCustomOperator("Count", {}, {1}, {2});
  writer.AddCustomOperator("AddOne", {}, {2}, {3});
  writer.SetInputs({0});
  writer.SetOutputs({3});
  TestDelegate fixed, dynamic;
  fixed.claims = {0};
  dynamic.claims = {0, 2};
  dynamic.delegate.flags = kDynamic;
  const auto interpreter = Open(writer);
  EXPECT_THAT(interpreter->ApplyDelegate(&fixed.delegate).message(), HasSubstr("static shapes"));
  ASSERT_OK(interpreter->ApplyDelegate(&dynamic.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 0}), ElementsAre(1, 1));
  EXPECT_THAT(RunOn(*interpreter, {3, 0}), ElementsAre(1, 1, 1, 1));
}

TEST(DelegateTest, CanBeTakenOff) {
  ModelWriter writer;
  WriteChain(writer, 3);
  TestDelegate delegate;
  delegate.claims = {0, 1, 2};
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->RemoveDelegates());
  EXPECT_EQ(delegate.kernels_alive, 0);
  EXPECT_EQ(interpreter->Plan().size(), 3u);
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(4, 5));
  EXPECT_EQ(delegate.invokes, 0);
}

// Values that a delegate keeps are fetched for the host's nodes and for the caller, and only then.
TEST(DelegateTest, ValuesThatItKeepsAreFetched) {
  ModelWriter writer;
  WriteChain(writer, 4);
  for (const bool cluster : {true, false}) {
    SCOPED_TRACE(cluster);
    TestDelegate delegate;
    delegate.keeps = true;
    delegate.claims = {0, 2, 3};  // the host's node reads one of its values, the caller another
    InterpreterOptions options;
    options.cluster_partitions = cluster;
    auto interpreter = Open(writer, options);
    ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
    ASSERT_OK(interpreter->AllocateTensors());
    for (int run = 1; run <= 2; ++run) {
      EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(5, 6));
      EXPECT_EQ(delegate.copies, 2 * run);
    }
    delegate.fail_copy = true;
    EXPECT_THAT(interpreter->Invoke().message(), HasSubstr("its memory is gone"));
  }
}

// The second of one delegate's two kernels reads what the first keeps.
TEST(DelegateTest, ValuesThatItKeepsForItselfAreNotFetched) {
  ModelWriter writer;
  for (int i = 0; i < 5; ++i) writer.AddTensor("t" + std::to_string(i), DataType::kFloat32, {2});
  writer.AddCustomOperator("AddOne", {}, {0}, {1});
  writer.AddCustomOperator("AddOne", {}, {0}, {2});
  writer.AddCustomOperator("Sum", {}, {2, 1}, {3});
  writer.AddCustomOperator("Sum", {}, {3, 2}, {4});
  writer.SetInputs({0});
  writer.SetOutputs({4});
  TestDelegate delegate;
  delegate.keeps = true;
  delegate.claims = {0, 2};
  InterpreterOptions options;
  options.cluster_partitions = false;
  auto interpreter = Open(writer, options);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(6, 9));
  EXPECT_EQ(delegate.copies, 1);  // for the host's last node
}

TEST(DelegateTest, OutputsThatCannotBeFetchedAreAnError) {
  ModelWriter writer;
  WriteChain(writer, 2);
  TestDelegate delegate;
  delegate.keeps = delegate.fail_copy = true;
  delegate.claims = {0, 1};
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(interpreter->Invoke().message(),
              HasSubstr("reading an output back from its delegate"));
}

TEST(DelegateTest, WhatItKeepsIsFreedWhenItIsTakenOff) {
  ModelWriter writer;
  WriteChain(writer, 3);
  for (const bool frees : {true, false}) {
    TestDelegate delegate;
    delegate.keeps = true;
    delegate.claims = {0, 1, 2};
    if (!frees) delegate.delegate.FreeBufferHandle = nullptr;
    auto interpreter = Open(writer);
    ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
    ASSERT_OK(interpreter->AllocateTensors());
    EXPECT_THAT(RunOn(*interpreter, {1, 2}), ElementsAre(4, 5));
    EXPECT_EQ(delegate.kept.size(), 1u);
    ASSERT_OK(interpreter->RemoveDelegates());
    EXPECT_EQ(delegate.kept.size(), frees ? 0u : 1u);
    ASSERT_OK(interpreter->AllocateTensors());
    EXPECT_THAT(RunOn(*interpreter, {3, 4}), ElementsAre(6, 7));
    EXPECT_EQ(delegate.copies, 1);
  }
}

TEST(DelegateTest, NothingIsFreedThatItDoesNotKeep) {
  static int freed;
  freed = 0;
  ModelWriter writer;
  WriteChain(writer, 3);
  TestDelegate delegate;
  delegate.claims = {0, 1, 2};
  delegate.delegate.FreeBufferHandle = [](tflite::TfLiteContext*, tflite::TfLiteDelegate*,
                                          tflite::TfLiteBufferHandle*) { ++freed; };
  auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->Invoke());
  ASSERT_OK(interpreter->RemoveDelegates());
  EXPECT_EQ(freed, 0);
}

// Delegates that ask for it find the shapes of the values between the nodes that they took.
TEST(DelegateTest, ShapesAreToldInsideOfPartitionsWhereThatIsAskedFor) {
  ModelWriter writer;
  WriteChain(writer, 3);
  for (const bool asks : {true, false}) {
    TestDelegate delegate;
    delegate.claims = {0, 1, 2};
    delegate.delegate.flags = kDynamic;
    if (asks) delegate.delegate.flags |= tflite::kTfLiteDelegateFlagsRequirePropagatedShapes;
    auto interpreter = Open(writer);
    ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
    const int32_t dims[] = {3};
    ASSERT_OK(interpreter->ResizeInput(0, dims));
    ASSERT_OK(interpreter->AllocateTensors());
    const std::vector<int> shape = {asks ? 3 : 2};
    EXPECT_THAT(delegate.shapes_inside, ElementsAre(shape, shape));
    EXPECT_THAT(RunOn(*interpreter, {1, 2, 3}), ElementsAre(4, 5, 6));
  }
}

// Behind a value whose shape is known only when it is there, no shapes are told.
TEST(DelegateTest, ShapesAreToldUpToTheFirstThatDependsOnValues) {
  static int prepares;
  prepares = 0;
  OpResolver resolver;
  resolver.AddAll(TestOperators());
  tflite::TfLiteRegistration watched = resolver.FindCustom("AddOne", 1)->registration;
  static const auto prepare = watched.prepare;
  watched.prepare = [](tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
    ++prepares;
    return prepare(context, node);
  };
  resolver.AddCustom("Watched", watched);
  ModelWriter writer;
  for (int i = 0; i < 4; ++i) writer.AddTensor("t" + std::to_string(i), DataType::kFloat32, {2});
  writer.AddCustomOperator("AddOne", {}, {0}, {1});
  writer.AddCustomOperator("Count", {}, {1}, {2});
  writer.AddCustomOperator("Watched", {}, {2}, {3});
  writer.SetInputs({0});
  writer.SetOutputs({3});
  TestDelegate delegate;
  delegate.claims = {0};
  delegate.delegate.flags = kDynamic | tflite::kTfLiteDelegateFlagsRequirePropagatedShapes;
  InterpreterOptions options;
  options.resolver = &resolver;
  auto interpreter = Open(writer, options);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(prepares, 0);
  EXPECT_THAT(RunOn(*interpreter, {2, 0}), ElementsAre(1, 1, 1));
  EXPECT_EQ(prepares, 1);
}

// Outside of a delegate's Prepare the graph is not to be looked at.
TEST(DelegateTest, ContextIsClosedToKernels) {
  ModelWriter writer;
  WriteChain(writer, 1);
  auto interpreter = Open(writer);
  static tflite::TfLiteContext* context;
  tflite::TfLiteDelegate delegate{};
  delegate.Prepare = [](tflite::TfLiteContext* given, tflite::TfLiteDelegate*) {
    context = given;
    tflite::TfLiteNode* node = nullptr;
    tflite::TfLiteRegistration* registration = nullptr;
    EXPECT_NE(given->GetNodeAndRegistration(given, 99, &node, &registration), tflite::kTfLiteOk);
    EXPECT_EQ(given->GetNodeAndRegistration(given, 0, &node, &registration), tflite::kTfLiteOk);
    EXPECT_STREQ(registration->custom_name, "AddOne");
    const int wrong[] = {5};
    const auto nodes = tflite::MakeIntArray(wrong);
    EXPECT_NE(given->ReplaceNodeSubsetsWithDelegateKernels(given, {}, nodes.get(), nullptr),
              tflite::kTfLiteOk);
    return tflite::kTfLiteOk;
  };
  ASSERT_OK(interpreter->ApplyDelegate(&delegate));
  tflite::TfLiteIntArray* plan = nullptr;
  EXPECT_NE(context->GetExecutionPlan(context, &plan), tflite::kTfLiteOk);
}

}  // namespace
}  // namespace fuselite::interpreter
