// Conditions of loops whose turns are computed at once where these are one value of a fixed graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/loop_calls.h"
#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace testing;

// A condition over a value that the body computes.
TEST(LoopCondition, UntilASumIsLarge) {
  Builder b;
  const int x = b.In({1, 4}), last = b.AddTensor("last", kFloat, {1, 4});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {x}, {last});
  b.End({last});
  b.AddSubgraph("condition");
  const int axes = b.AddConstant("axes", kInt, {2}, std::vector<int32_t>{0, 1});
  const int value = b.In({1, 4});
  const int sum = b.Op("SUM", {b.Op("ABS", {value}, {1, 4}), axes}, Shape());
  const int most = b.AddConstant("most", kFloat, Shape(), std::vector{50.0f});
  b.End({b.Op("LESS", {sum, most}, Shape(), kBool)});
  b.AddSubgraph("body");
  const int before = b.In({1, 4});
  const int one = b.AddConstant("one", kFloat, Shape(), std::vector{1.5f});
  b.End({b.Op("MUL", {b.Op("ADD", {b.Op("ABS", {before}, {1, 4}), one}, {1, 4}), one}, {1, 4})});
  EXPECT_THAT(ExpectDelegateAgrees(b).calls[2], ::testing::ElementsAre(2, 1, 1));
}

// The condition reads one of two numbers that begin equal: which of them, the host's turns tell.
TEST(LoopCondition, OfTwoCounts) {
  for (const int32_t limit : kLimits) {
    for (const bool reads_second : {false, true}) {
      Builder b;
      const int first = b.AddTensor("first", kInt, Shape()),
                second = b.AddTensor("second", kInt, Shape());
      b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), b.Number(0), b.In({4})},
                       {first, second, b.AddTensor("last", kFloat, {4})});
      b.End({first, second});
      b.AddSubgraph("condition");
      const int counts[] = {b.In(Shape(), kInt), b.In(Shape(), kInt)};
      b.In({4});
      const int most = b.Number(reads_second ? 3 * limit : limit);
      b.End({b.Op("LESS", {counts[reads_second], most}, Shape(), kBool)});
      b.AddSubgraph("body");
      const int one = b.In(Shape(), kInt), three = b.In(Shape(), kInt), value = b.In({4});
      b.End({b.Next(one), b.Op("ADD", {three, b.Number(3)}, Shape(), kInt),
             b.Op("SIN", {value}, {4})});
      Delegated delegated = ExpectDelegateAgrees(b);
      delegated.calls[2].resize(3);
      EXPECT_EQ(delegated.calls[2], CallsAtOnce(limit)) << limit;
    }
  }
}

// While `value` is no larger than five, which each turn raises by one: by `test` of it.
using Test = int (*)(Builder& b, int value);
Delegated CountWhile(Test test) {
  Builder b;
  const int x = b.In({1}), zero = b.Op("SUB", {x, x}, {1}), last = b.AddTensor("last", kFloat, {1});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {zero}, {last});
  b.End({last});
  b.AddSubgraph("condition");
  b.End({test(b, b.In({1}))});
  b.AddSubgraph("body");
  const int one = b.AddConstant("one", kFloat, {1}, std::vector{1.0f});
  b.End({b.Op("ADD", {b.In({1}), one}, {1})});
  return ExpectDelegateAgrees(b);
}

// A value of the condition that says otherwise, of which a shape is made at run time.
TEST(LoopCondition, OfSeveralParts) {
  const Delegated delegated = CountWhile([](Builder& b, int value) {
    const int five = b.AddConstant("five", kFloat, {1}, std::vector{5.0f});
    const int places =
        b.Op("WHERE", {b.Op("GREATER", {value, five}, {1}, kBool)}, {1, 1}, DataType::kInt64);
    const int count = b.Op("GATHER", {b.ShapeOf(places, 2), b.Number(0)}, Shape(), kInt);
    return b.Op("EQUAL", {count, b.Number(0)}, Shape(), kBool);
  });
  EXPECT_THAT(delegated.calls.at(2), ::testing::Each(6));
}

TEST(LoopCondition, ThatKeepsAState) {
  const Delegated delegated = CountWhile([](Builder& b, int value) {
    const int state = b.AddTensor({"state", kFloat, {1, 1}, {}, {}, true, {}});
    const int shape = b.AddConstant("shape", kInt, {3}, std::vector<int32_t>{1, 1, 1});
    const int weight = b.AddConstant("weight", kFloat, {1, 1}, std::vector{1.0f}),
              none = b.AddConstant("none", kFloat, {1, 1}, std::vector{0.0f}),
              bias = b.AddConstant("bias", kFloat, {1}, std::vector{0.0f});
    const int row = b.Op("RESHAPE", {value, shape}, {1, 1, 1});
    const int same =
        b.Op("UNIDIRECTIONAL_SEQUENCE_RNN", {row, weight, none, bias, state}, {1, 1, 1});
    const int five = b.AddConstant("five", kFloat, Shape(), std::vector{5.5f});
    const int axes = b.AddConstant("axes", kInt, {3}, std::vector<int32_t>{0, 1, 2});
    return b.Op("LESS", {b.Op("SUM", {same, axes}, Shape()), five}, Shape(), kBool);
  });
  EXPECT_THAT(delegated.calls.at(2), ::testing::Each(6));
}

}  // namespace
}  // namespace fuselite::partitioner
