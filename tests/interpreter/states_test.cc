// When a graph is ready to run, and what is prepared again: through delegates, resizes and shapes
// that a run finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tflite/builtin_codes.h"
#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kDynamic = tflite::kTfLiteDelegateFlagsAllowDynamicTensors;

bool IsReady(Interpreter& interpreter) {
  const Status status = interpreter.Invoke();
  if (status.ok()) return true;
  EXPECT_THAT(status.message(), HasSubstr("allocate them before you invoke"));
  return false;
}

TEST(States, ADelegateIsNoneWithoutItsPrepare) {
  ModelWriter writer;
  WriteChain(writer, 1);
  const auto interpreter = Open(writer);
  EXPECT_THAT(interpreter->ApplyDelegate(nullptr).message(), HasSubstr("without a Prepare"));
  tflite::TfLiteDelegate hollow{};
  EXPECT_THAT(interpreter->ApplyDelegate(&hollow).message(), HasSubstr("without a Prepare"));
}

// Static delegates and dynamic ones, on a graph that is ready and on one that is not.
TEST(States, AGraphIsReadyAfterADelegateAsBefore) {
  ModelWriter writer;
  WriteChain(writer, 2);
  for (const bool ready : {false, true}) {
    for (const bool fails : {false, true}) {
      for (const int64_t flags : {int64_t{0}, kDynamic}) {
        SCOPED_TRACE(::testing::Message() << ready << fails << flags);
        TestDelegate delegate;
        delegate.claims = {0, 1};
        delegate.fail_prepare = fails;
        delegate.delegate.flags = flags;
        const auto interpreter = Open(writer);
        if (ready) ASSERT_OK(interpreter->AllocateTensors());
        EXPECT_EQ(interpreter->ApplyDelegate(&delegate.delegate).ok(), !fails);
        // One that wants final shapes has them prepared, and lets go of them where it fails.
        EXPECT_EQ(IsReady(*interpreter), ready || (flags == 0 && !fails));
        EXPECT_EQ(delegate.kernels_alive, fails ? 0 : 1);
      }
    }
  }
}

TEST(States, AGraphIsReadyWithoutItsDelegatesAsBefore) {
  ModelWriter writer;
  WriteChain(writer, 2);
  for (const bool ready : {false, true}) {
    TestDelegate delegate;
    delegate.claims = {0, 1};
    delegate.delegate.flags = kDynamic;
    const auto interpreter = Open(writer);
    ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
    if (ready) ASSERT_OK(interpreter->AllocateTensors());
    ASSERT_OK(interpreter->RemoveDelegates());
    EXPECT_EQ(IsReady(*interpreter), ready);
  }
}

TEST(States, AShapeThatATensorHasAlreadyChangesNothing) {
  ModelWriter writer;
  WriteChain(writer, 1);
  const auto interpreter = Open(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->ResizeInput(0, std::vector{2}));
  EXPECT_TRUE(IsReady(*interpreter));
  ASSERT_OK(interpreter->ResizeInput(0, std::vector{3}));
  EXPECT_FALSE(IsReady(*interpreter));
}

// x -> Count -> Counted -> y, and what is known of it.
int prepares = 0;
std::unique_ptr<Interpreter> OpenCounted() {
  static const OpResolver resolver = [] {
    OpResolver all;
    all.AddAll(TestOperators());
    tflite::TfLiteRegistration op = all.FindCustom("AddOne", 1)->registration;
    static const auto prepare = op.prepare;
    op.prepare = [](tflite::TfLiteContext* context, tflite::TfLiteNode* node) {
      ++prepares;
      return prepare(context, node);
    };
    all.AddCustom("Counted", op);
    return all;
  }();
  ModelWriter writer;
  for (const char* name : {"x", "found", "y"}) writer.AddTensor(name, DataType::kFloat32, {1});
  writer.AddCustomOperator("Count", {}, {0}, {1});
  writer.AddCustomOperator("Counted", {}, {1}, {2});
  writer.SetInputs({0});
  writer.SetOutputs({2});
  InterpreterOptions options;
  options.resolver = &resolver;
  return Open(writer, options);
}

TEST(States, NodesArePreparedOnceForTheShapesThatARunFinds) {
  const auto interpreter = OpenCounted();
  prepares = 0;
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(prepares, 0) << "its input has no shape yet";
  struct Run {
    float count;
    int prepares;
  };
  for (const Run& run : {Run{2, 1}, {2, 1}, {3, 2}, {3, 2}, {2, 3}}) {
    EXPECT_EQ(RunOn(*interpreter, {run.count}), std::vector<float>(size_t(run.count), 1.0f));
    EXPECT_EQ(prepares, run.prepares) << run.count;
  }
}

TEST(States, GraphsThatAreReadyAreNotPreparedAgain) {
  ModelWriter writer;
  WriteChain(writer, 2);
  TestDelegate delegate;
  delegate.claims = {0, 1};
  const auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate.delegate));
  ASSERT_OK(interpreter->AllocateTensors());
  const int before = delegate.kernel_prepares;
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_EQ(delegate.kernel_prepares, before);
}

// What a run has found since does not make it static.
TEST(States, GraphsWhoseShapesARunFoundAreStillNotForStaticDelegates) {
  const auto interpreter = OpenCounted();
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {2}), ElementsAre(1, 1));
  TestDelegate delegate;
  EXPECT_THAT(interpreter->ApplyDelegate(&delegate.delegate).message(), HasSubstr("static shapes"));
}

// What kernels return, and what is said of it.
TEST(States, FailuresAreToldByTheirStatus) {
  struct Case {
    tflite::TfLiteStatus status;
    const char* said;
    StatusCode code;
    const char* message;
  };
  static const Case* asked;
  const Case cases[] = {
      {tflite::kTfLiteError, "", StatusCode::kInternal, "AddOne: failed with status 1"},
      {tflite::kTfLiteError, "too hot", StatusCode::kInternal, "AddOne: too hot"},
      {tflite::kTfLiteError, "one\n two \t", StatusCode::kInternal, "AddOne: one  two"},
      {tflite::kTfLiteUnresolvedOps, "no table", StatusCode::kUnsupported, "AddOne: no table"},
      {tflite::kTfLiteCancelled, "", StatusCode::kCancelled, "AddOne: cancelled"}};
  OpResolver resolver;
  tflite::TfLiteRegistration op = TestOperators().FindCustom("AddOne", 1)->registration;
  op.invoke = [](tflite::TfLiteContext* context, tflite::TfLiteNode*) {
    if (*asked->said != '\0') context->ReportError(context, "%s", asked->said);
    return asked->status;
  };
  resolver.AddCustom("AddOne", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  for (const Case& c : cases) {
    asked = &c;
    ModelWriter writer;
    WriteChain(writer, 1);
    const auto interpreter = Open(writer, options);
    ASSERT_OK(interpreter->AllocateTensors());
    const Status status = interpreter->Invoke();
    EXPECT_EQ(status.code(), c.code) << c.message;
    EXPECT_EQ(status.message(), std::string("node 0 custom operator ") + c.message);
  }
}

// What is said of a run that went well is not said of a later one.
TEST(States, WhatWasSaidOfARunThatWentWellIsForgotten) {
  static bool fails = false;
  OpResolver resolver;
  tflite::TfLiteRegistration op = TestOperators().FindCustom("AddOne", 1)->registration;
  op.invoke = [](tflite::TfLiteContext* context, tflite::TfLiteNode*) {
    context->ReportError(context, fails ? "now" : "then");
    return fails ? tflite::kTfLiteError : tflite::kTfLiteOk;
  };
  resolver.AddCustom("AddOne", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  ModelWriter writer;
  WriteChain(writer, 1);
  const auto interpreter = Open(writer, options);
  ASSERT_OK(interpreter->AllocateTensors());
  ASSERT_OK(interpreter->Invoke());
  fails = true;
  EXPECT_EQ(interpreter->Invoke().message(), "node 0 custom operator AddOne: now");
}

TEST(States, KernelsMayLookAtTensorsWhileTheyAreFreed) {
  static int rank;
  struct Looking {
    tflite::TfLiteContext* context;
  };
  rank = 0;
  OpResolver resolver;
  tflite::TfLiteRegistration op = TestOperators().FindCustom("AddOne", 1)->registration;
  op.init = [](tflite::TfLiteContext* context, const char*, size_t) -> void* {
    return new Looking{context};
  };
  op.free = [](tflite::TfLiteContext*, void* data) {
    rank += static_cast<Looking*>(data)->context->tensors[0].dims->size;
    delete static_cast<Looking*>(data);
  };
  resolver.AddCustom("AddOne", op);
  InterpreterOptions options;
  options.resolver = &resolver;
  ModelWriter writer;
  WriteChain(writer, 2);
  Open(writer, options).reset();
  EXPECT_EQ(rank, 2);
}

}  // namespace
}  // namespace fuselite::interpreter
