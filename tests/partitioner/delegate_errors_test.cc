// Errors of the delegate's kernels at those who call fuselite's interpreter: of their own kind
// each, through the C interface, which is all that lies between the two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <new>
#include <thread>

#include "fuselite/delegate.h"
#include "fuselite/interpreter.h"
#include "partitioner/guard.h"
#include "partitioner/import/host_call.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/failure_context.h"
#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

using DelegateOptions = std::map<const char*, const char*>;

// A model with the delegate applied.
class Session {
 public:
  explicit Session(const std::vector<std::byte>& file, const DelegateOptions& options = {}) {
    FuseliteModel* const model = FuseliteModelLoadMemory(file.data(), file.size());
    EXPECT_NE(model, nullptr) << FuseliteLastError();
    interpreter_ = FuseliteInterpreterCreate(model, nullptr);
    FuseliteModelDelete(model);
    std::vector<char*> keys, values;
    for (const auto& [key, value] : options) {
      keys.push_back(const_cast<char*>(key));
      values.push_back(const_cast<char*>(value));
    }
    delegate_ = tflite_plugin_create_delegate(keys.data(), values.data(), keys.size(), nullptr);
  }
  ~Session() {
    FuseliteInterpreterDelete(interpreter_);
    FuseliteDelegateDelete(delegate_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  FuseliteStatus Apply() { return FuseliteInterpreterApplyDelegate(interpreter_, delegate_); }
  FuseliteStatus Allocate() { return FuseliteInterpreterAllocate(interpreter_); }
  FuseliteStatus Invoke() { return FuseliteInterpreterInvoke(interpreter_); }
  FuseliteStatus AllocateFor(const std::vector<int32_t>& shape) {
    EXPECT_EQ(FuseliteInterpreterResizeInput(interpreter_, 0, shape.data(), shape.size()),
              kFuseliteOk);
    return Allocate();
  }
  void WriteInt(size_t input, int32_t value) {
    EXPECT_EQ(FuseliteInterpreterCopyIn(interpreter_, input, &value, sizeof value), kFuseliteOk);
  }

 private:
  FuseliteInterpreter* interpreter_ = nullptr;
  TfLiteDelegate* delegate_ = nullptr;
};

// Two layers of 64 x 64.
std::vector<std::byte> Layers() {
  Builder b;
  b.End({b.Dense(b.Dense(b.In({1, 64}), {1, 64}, 64), {1, 64}, 64)});
  return b.Finish();
}

// As many ones as the input says.
std::vector<std::byte> Ones() {
  Builder b;
  const int count = b.In({1}, kInt);
  const int one = b.AddConstant("one", kFloat, Shape(), std::vector{1.0f});
  b.End({b.Op("NEG", {b.Op("FILL", {count, one}, {1})}, {1})});
  return b.Finish();
}

// Turns of a loop that doubles the length of a value, which the host's kernel runs one by one.
std::vector<std::byte> Doubles() {
  Builder b;
  const int rows = b.In({64, 64}), limit = b.In(Shape(), kInt);
  const int count = b.AddTensor("count", kInt, Shape()), same = b.AddTensor("limit", kInt, Shape());
  const int last = b.AddTensor("last", kFloat, {64, 64});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), limit, rows},
                   {count, same, last});
  b.End({b.Op("NEG", {last}, {64, 64})});
  b.AddSubgraph("condition");
  const int turn = b.In(Shape(), kInt), of = b.In(Shape(), kInt);
  b.In({64, 64});
  b.End({b.Op("LESS", {turn, of}, Shape(), kBool)});
  b.AddSubgraph("body");
  const int now = b.In(Shape(), kInt), kept = b.In(Shape(), kInt), x = b.In({64, 64});
  b.End({b.Next(now), kept, b.Op("CONCATENATION", {x, x}, {128, 64})});
  return b.Finish();
}

TEST(DelegateErrors, OfTheBudgetAreOverBudget) {
  for (const auto& [option, value] :
       DelegateOptions{{"max_memory", "64"}, {"max_multiply_adds", "9"}}) {
    Session s(Layers(), {{option, value}});
    ASSERT_EQ(s.Apply(), kFuseliteOk) << FuseliteLastError();
    EXPECT_EQ(s.Allocate(), kFuseliteOverBudget) << FuseliteLastError();
    EXPECT_EQ(FuseliteLastStatus(), kFuseliteOverBudget);
    EXPECT_THAT(FuseliteLastError(), AllOf(HasSubstr("fuselite: prepare: "),
                                           HasSubstr(std::string(option) + " allows")));
  }
}

TEST(DelegateErrors, OfAShapeThatDoesNotFitAreTheCallers) {
  Session s(Layers());
  ASSERT_EQ(s.Apply(), kFuseliteOk);
  ASSERT_EQ(s.Allocate(), kFuseliteOk) << FuseliteLastError();
  EXPECT_EQ(s.AllocateFor({1, 65}), kFuseliteInvalidArgument) << FuseliteLastError();
  EXPECT_EQ(s.Invoke(), kFuseliteInvalidArgument) << "nothing is allocated";
  EXPECT_EQ(s.AllocateFor({2, 64}), kFuseliteOk) << "a refusal is not for ever";
  EXPECT_EQ(s.Invoke(), kFuseliteOk);
}

TEST(DelegateErrors, OfValuesInTheRunHaveTheirKind) {
  Session s(Ones(), {{"max_memory", "64K"}});
  ASSERT_EQ(s.Apply(), kFuseliteOk);
  ASSERT_EQ(s.Allocate(), kFuseliteOk) << FuseliteLastError();
  const std::pair<int32_t, FuseliteStatus> runs[] = {{5, kFuseliteOk},
                                                     {-1, kFuseliteInvalidArgument},
                                                     {1 << 20, kFuseliteOverBudget},
                                                     {7, kFuseliteOk}};
  for (const auto& [count, expected] : runs) {
    s.WriteInt(0, count);
    EXPECT_EQ(s.Invoke(), expected) << count << ": " << FuseliteLastError();
  }
}

// The loop is the host's, within a partition: an error of its body passes two kernels of the
// delegate and the host's own between them.
TEST(DelegateErrors, KeepTheirKindThroughTheHostsLoop) {
  Session s(Doubles(), {{"max_memory", "1M"}});
  ASSERT_EQ(s.Apply(), kFuseliteOk);
  ASSERT_EQ(s.Allocate(), kFuseliteOk) << FuseliteLastError();
  s.WriteInt(1, 2);
  EXPECT_EQ(s.Invoke(), kFuseliteOk) << FuseliteLastError();
  s.WriteInt(1, 12);
  EXPECT_EQ(s.Invoke(), kFuseliteOverBudget) << FuseliteLastError();
  EXPECT_THAT(FuseliteLastError(), HasSubstr("max_memory allows"));
}

TEST(DelegateErrors, OfSeveralThreadsAreNotMixed) {
  const auto fail = [](const DelegateOptions& options, const std::vector<int32_t>& shape,
                       FuseliteStatus expected) {
    Session s(Layers(), options);
    ASSERT_EQ(s.Apply(), kFuseliteOk);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(s.AllocateFor(shape), expected) << FuseliteLastError();
  };
  std::thread other([&] { fail({{"max_memory", "64"}}, {1, 64}, kFuseliteOverBudget); });
  fail({}, {1, 65}, kFuseliteInvalidArgument);
  other.join();
}

// A run that somebody ended is no error, in whatever kernel of the host it was.
TEST(DelegateErrors, ACancelledLoopOfTheHostIsCancelled) {
  static tflite::TfLiteStatus answer;
  tflite::TfLiteRegistration registration{};
  registration.prepare = [](tflite::TfLiteContext*, tflite::TfLiteNode*) {
    return tflite::kTfLiteOk;
  };
  registration.invoke = [](tflite::TfLiteContext*, tflite::TfLiteNode*) { return answer; };
  const tflite::IntArrayPtr none = tflite::MakeIntArray({});
  tflite::TfLiteNode node{};
  node.inputs = node.outputs = none.get();
  const auto call = HostCall::Take(node, registration);
  ASSERT_TRUE(call.ok()) << call.status().ToString();
  const std::pair<tflite::TfLiteStatus, StatusCode> cases[] = {
      {tflite::kTfLiteOk, StatusCode::kOk},
      {tflite::kTfLiteCancelled, StatusCode::kCancelled},
      {tflite::kTfLiteError, StatusCode::kInternal}};
  tflite::TfLiteContext context{};
  for (const auto& [given, expected] : cases) {
    answer = given;
    EXPECT_EQ((*call)->Invoke(&context).code(), expected);
  }
}

// What a host of the next test was told.
std::string& Reported() {
  static std::string text;
  return text;
}

void AppendReport(tflite::TfLiteContext* /*context*/, const char* format, ...) {
  char line[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  Reported() += line;
}

// Other hosts are told by a text alone, which ends as a sentence: LiteRT writes its own behind it.
TEST(DelegateErrors, AreSentencesWhereTheHostHasNoKinds) {
  tflite::TfLiteContext context{};
  context.ReportError = AppendReport;
  std::string& text = Reported();
  const auto fail = [&](const auto& body) {
    text.clear();
    return GuardKernel(&context, "prepare", body);
  };
  EXPECT_EQ(fail([] { return Unsupported("no such shape"); }), tflite::kTfLiteError);
  EXPECT_EQ(text, "fuselite: prepare: no such shape.");
  EXPECT_EQ(fail([]() -> Status { throw std::bad_alloc(); }), tflite::kTfLiteError);
  EXPECT_EQ(text, "fuselite: prepare: no memory left.");
  EXPECT_EQ(fail([] { return Status(StatusCode::kCancelled, "ended"); }), tflite::kTfLiteCancelled);
  EXPECT_EQ(text, "");
  // A host whose context of that number is something else.
  context.GetExternalContext = [](tflite::TfLiteContext*, tflite::TfLiteExternalContextType type) {
    static tflite::TfLiteExternalContext other;
    other.type = type;
    return &other;
  };
  EXPECT_EQ(fail([] { return Unsupported("no such type"); }), tflite::kTfLiteError);
  EXPECT_EQ(text, "fuselite: prepare: no such type.");
}

// A delegate that says nothing of its error's kind, or a number that this version does not know.
TEST(DelegateErrors, WithoutAKindAreInternal) {
  const std::vector<std::byte> file = Layers();
  const auto model = interpreter::LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok());
  static int told = 0;
  tflite::TfLiteDelegate delegate{};
  delegate.Prepare = [](tflite::TfLiteContext* context, tflite::TfLiteDelegate*) {
    if (told != 0) TellFailure(context, static_cast<StatusCode>(told));
    return tflite::kTfLiteError;
  };
  const std::pair<int, StatusCode> cases[] = {{0, StatusCode::kInternal},
                                              {-3, StatusCode::kInternal},
                                              {1000, StatusCode::kInternal},
                                              {2, StatusCode::kUnsupported},
                                              {0, StatusCode::kInternal}};
  const std::unique_ptr<interpreter::Interpreter> host = *interpreter::Interpreter::Create(*model);
  for (const auto& [code, expected] : cases) {
    told = code;
    EXPECT_EQ(host->ApplyDelegate(&delegate).code(), expected) << code;
  }
}

}  // namespace
}  // namespace fuselite::partitioner
