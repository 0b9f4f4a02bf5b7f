// Memory that the system refuses, at each allocation in turn: the call that asked for it says so,
// or does without. Nothing else is lost: called again, it does what it would have done.
#include <gtest/gtest.h>

#include <functional>

#include "fuselite/delegate.h"
#include "fuselite/interpreter.h"
#include "tests/partitioner/subgraph_models.h"
#include "tests/runtime/counted_heap.h"

namespace fuselite::partitioner {
namespace {

using namespace testing;
using fuselite::testing::heap_grants;

// Weights that a node makes of constants, a loop over the rows of a sequence, a branch, a shape
// that the run decides.
std::vector<std::byte> EverythingThatTakesMemory() {
  Builder b;
  const int rows = b.In({20, 1, 6}), state = b.In({1, 8}), small = b.In(Shape(), kBool);
  const int weights = b.Op("NEG", {b.Weights({8, 8})}, {8, 8});
  const int layer = b.Op("FULLY_CONNECTED", {state, weights, -1}, {1, 8});
  const int count = b.AddTensor("count", kInt, Shape());
  const int same = b.AddTensor("rows", kFloat, {20, 1, 6}),
            last = b.AddTensor("last", kFloat, {1, 8});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), rows, layer},
                   {count, same, last});
  const int chosen = b.AddTensor("chosen", kFloat, {1, 8});
  b.AddControlFlow(tflite::kTfLiteBuiltinIf, {3, 4}, {small, last}, {chosen});
  const int places =
      b.Op("WHERE", {b.Op("GREATER", {chosen, layer}, {1, 8}, kBool)}, {8, 2}, DataType::kInt64);
  // What is between them has memory of the partition's, once a run has its shape.
  b.End({b.Op("TANH", {chosen}, {1, 8}), b.Op("NEG", {places}, {8, 2}, DataType::kInt64)});
  b.TurnsOverRows();
  for (const char* name : {"ABS", "NEG"}) {
    b.AddSubgraph(name);
    const int value = b.In({1, 8});
    b.End({b.Op(name, {value}, {1, 8})});
  }
  return b.Finish();
}

// A variable that a subgraph fills and each run assigns, beside weights with a scale for each row.
// What a run gives depends on the one before it alone, which a run that failed may have been.
std::vector<std::byte> SomethingThatKeepsAState() {
  Builder b;
  const auto handle = [&] {
    const int tensor = b.AddTensor("handle", DataType::kResource, Shape());
    b.AddVariableHandle("state", tensor);
    return tensor;
  };
  const int x = b.In({1, 8}), value = b.AddTensor("value", kFloat, {1, 8});
  b.AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {1}, {}, {});
  const int state = handle();
  b.AddOperator(tflite::kTfLiteBuiltinReadVariable, {state}, {value});
  const Quantization scales{std::vector<float>(8, 0.02f), std::vector<int32_t>(8, 0)};
  const int weights =
      b.AddConstant("weights", DataType::kInt8, {8, 8}, std::vector<int8_t>(64, 3), scales);
  const int layer = b.Op("FULLY_CONNECTED", {x, weights, -1}, {1, 8});
  const int sum = b.Op("ADD", {value, layer}, {1, 8});
  b.AddOperator(tflite::kTfLiteBuiltinAssignVariable, {state, layer}, {});
  b.End({b.Op("TANH", {sum}, {1, 8})});
  b.AddSubgraph("initializer");
  b.AddOperator(tflite::kTfLiteBuiltinAssignVariable, {handle(), b.Weights({1, 8})}, {});
  b.End({});
  return b.Finish();
}

struct Session {
  ~Session() {
    FuseliteInterpreterDelete(interpreter);
    FuseliteDelegateDelete(delegate);
    FuseliteModelDelete(model);
  }
  FuseliteModel* model = nullptr;
  TfLiteDelegate* delegate = nullptr;
  FuseliteInterpreter* interpreter = nullptr;
};

void FillInputs(FuseliteInterpreter* interpreter) {
  kernels::testing::Random random(1);
  for (size_t i = 0; i < FuseliteInterpreterInputCount(interpreter); ++i) {
    const int32_t index = FuseliteInterpreterInput(interpreter, i);
    FuseliteTensor input;
    ASSERT_EQ(FuseliteInterpreterTensor(interpreter, index, &input), kFuseliteOk);
    if (input.type == kFuseliteBool) *static_cast<bool*>(input.data) = true;
    if (input.type != kFuseliteFloat32) continue;
    for (size_t j = 0; j < input.bytes / sizeof(float); ++j) {
      static_cast<float*>(input.data)[j] = random.Float(-1, 1);
    }
  }
}

std::vector<std::vector<float>> Outputs(FuseliteInterpreter* interpreter) {
  std::vector<std::vector<float>> outputs;
  for (size_t i = 0; i < FuseliteInterpreterOutputCount(interpreter); ++i) {
    const int32_t index = FuseliteInterpreterOutput(interpreter, i);
    FuseliteTensor output;
    EXPECT_EQ(FuseliteInterpreterTensor(interpreter, index, &output), kFuseliteOk);
    std::vector<float>& values = outputs.emplace_back();
    for (size_t j = 0; j < output.bytes / sizeof(float); ++j) {
      values.push_back(output.type == kFuseliteFloat32
                           ? static_cast<const float*>(output.data)[j]
                           : static_cast<float>(static_cast<const int32_t*>(output.data)[j]));
    }
  }
  return outputs;
}

// Opens the model and runs it twice; allocation `refused` of this thread is refused. Where a call
// fails for that, it is made again. False where there are fewer allocations.
bool RunsWithout(int64_t refused, std::span<const std::byte> file, bool delegated,
                 std::vector<std::vector<float>>& outputs) {
  Session s;
  heap_grants = refused;
  const auto insist = [&](const std::function<bool()>& call) {
    if (call()) return true;
    EXPECT_LT(heap_grants, 0) << FuseliteLastError();
    const bool has_status = s.model == nullptr || s.delegate != nullptr;  // a delegate's has none
    EXPECT_TRUE(!has_status || FuseliteLastStatus() == kFuseliteOutOfMemory) << FuseliteLastError();
    heap_grants = -1;
    return call();
  };
  const auto is_ok = [](FuseliteStatus status) { return status == kFuseliteOk; };
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.report_error = [](const char*) {};
  const auto open = [&] {
    return insist([&] { return (s.model = FuseliteModelLoadMemory(file.data(), file.size())); }) &&
           insist([&] { return (s.delegate = FuseliteDelegateCreate(&options)); }) &&
           insist([&] { return (s.interpreter = FuseliteInterpreterCreate(s.model, nullptr)); });
  };
  const auto run = [&] {
    return insist([&] { return is_ok(FuseliteInterpreterAllocate(s.interpreter)); }) &&
           (FillInputs(s.interpreter), true) &&
           insist([&] { return is_ok(FuseliteInterpreterInvoke(s.interpreter)); }) &&
           insist([&] { return is_ok(FuseliteInterpreterInvoke(s.interpreter)); });
  };
  EXPECT_TRUE(open()) << FuseliteLastError();
  if (delegated) {
    // Without its delegate the model runs as before.
    const auto status = FuseliteInterpreterApplyDelegate(s.interpreter, s.delegate);
    EXPECT_TRUE(is_ok(status) || heap_grants < 0) << FuseliteLastError();
    EXPECT_TRUE(is_ok(status) || status == kFuseliteOutOfMemory) << FuseliteLastError();
  }
  const bool ran = run();
  const bool was_refused = std::exchange(heap_grants, -1) < 0;
  if (ran) {
    outputs = Outputs(s.interpreter);
  } else {
    // A partition that could not be read while the delegate was applied never is.
    EXPECT_EQ(FuseliteLastStatus(), kFuseliteOutOfMemory) << FuseliteLastError();
  }
  return was_refused;
}

void RefuseOneByOne(std::span<const std::byte> file, bool delegated) {
  std::vector<std::vector<float>> expected, outputs;
  RunsWithout(-1, file, delegated, expected);
  ASSERT_FALSE(expected.empty());
  int64_t refused = 0;
  for (; RunsWithout(refused, file, delegated, outputs); ++refused) {
    SCOPED_TRACE("without allocation " + std::to_string(refused));
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      // Where emission was refused, other kernels compute.
      ASSERT_THAT(outputs[i], ::testing::Pointwise(::testing::FloatNear(1e-5f), expected[i]));
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(refused, 100);
}

TEST(RefusedMemory, LosesNothingButTheCallThatAskedForIt) {
  for (const bool delegated : {true, false}) RefuseOneByOne(EverythingThatTakesMemory(), delegated);
}

TEST(RefusedMemory, LosesNoState) {
  for (const bool delegated : {true, false}) RefuseOneByOne(SomethingThatKeepsAState(), delegated);
}

}  // namespace
}  // namespace fuselite::partitioner
