// Runs of shapes and values that were seen before make nothing anew: they take next to nothing from
// the heap, and hold no more than the runs before. Many shapes hold the values of one of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/partitioner/subgraph_models.h"
#include "tests/runtime/counted_heap.h"

namespace fuselite::partitioner {
namespace {

using namespace testing;
using fuselite::testing::heap_counts;
using interpreter::Interpreter;

int Rows(Builder& b, int x, const Shape& most) {
  const int zero = b.AddConstant("zero", kFloat, Shape(), std::vector{0.0f});
  return b.Op("WHERE", {b.Op("GREATER", {x, zero}, {1, 8}, kBool)}, most, DataType::kInt64);
}

// Weights that do not depend on the run, whatever comes before them.
int Behind(Builder& b, int rows, const Shape& shape) {
  return b.Dense(b.Op("CAST", {rows}, shape), shape, 8);
}

// What the builder wrote, with the delegate. `host` is null where it was refused.
struct Delegated {
  explicit Delegated(Builder& b) : file(b.Finish()), delegate(BestOptions()) {
    const auto model = interpreter::LoadModelFromMemory(file, nullptr);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!model.ok()) return;
    host = *Interpreter::Create(*model);
    if (!host->ApplyDelegate(delegate.c_struct()).ok()) host = nullptr;
  }
  const std::vector<std::byte> file;
  Delegate delegate;
  std::unique_ptr<Interpreter> host;
};

using Model = void (*)(Builder& b);
struct Seen {
  const char* name;
  Model write;
  int turns = 1;  // in each run, of shapes of their own
};
const Seen kModels[] = {
    {"fixed",
     [](Builder& b) {
       b.End({b.Dense(b.In({1, 8}), {1, 8}, 8)});
     }},
    {"rows that the run finds",
     [](Builder& b) {
       b.End({Behind(b, Rows(b, b.In({1, 8}), {8, 2}), {8, 2})});
     }},
    {"a shape that is known in between",
     [](Builder& b) {
       const int first = Rows(b, b.In({1, 8}), {8, 2}), size = b.ShapeOf(first, 2);
       const int second = Rows(b, b.In({1, 8}), {8, 2});
       const int places = Behind(b, second, {8, 2});
       b.End({b.Op("RESHAPE", {b.Op("NEG", {first}, {8, 2}, DataType::kInt64), size}, {8, 2},
                   DataType::kInt64),
              places});
     }},
    {"small values that decide shapes",
     [](Builder& b) {
       const int x = b.In({2, 4}), times = b.In({2}, kInt);
       b.End({b.Dense(b.Op("ABS", {b.Op("TILE", {x, times}, {2, 4})}, {2, 4}), {2, 4}, 8)});
     }},
    {"a branch",
     [](Builder& b) {
       const int chooses = b.In({1}, kBool), x = b.In({1, 8});
       const int y = b.AddTensor("y", kFloat, {1, 8});
       b.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {chooses, x}, {y});
       b.End({b.Dense(y, {1, 8}, 8)});
       for (const char* op : {"ABS", "NEG"}) {
         b.AddSubgraph(op);
         b.End({b.Dense(b.Op(op, {b.In({1, 8})}, {1, 8}), {1, 8}, 8)});
       }
     }},
    {"a loop over rows",
     [](Builder& b) {
       const int rows = b.In({20, 1, 6}), state = b.In({1, 8});
       const int last = b.AddTensor("last", kFloat, {1, 8});
       b.AddControlFlow(
           tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), rows, state},
           {b.AddTensor("count", kInt, Shape()), b.AddTensor("same", kFloat, {20, 1, 6}), last});
       b.End({last});
       b.TurnsOverRows();
     }},
    {"a loop over the beginnings of rows, of as many shapes as turns",
     [](Builder& b) {
       const int rows = b.In({40, 8}), sum = b.In({1, 8});
       const int last = b.AddTensor("last", kFloat, {1, 8});
       b.AddControlFlow(
           tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(1), rows, sum},
           {b.AddTensor("count", kInt, Shape()), b.AddTensor("same", kFloat, {40, 8}), last});
       b.End({last});
       b.Below(40, {{40, 8}, {1, 8}});
       b.AddSubgraph("body");
       const int turn = b.In(Shape(), kInt), all = b.In({40, 8}), before = b.In({1, 8});
       const int one = b.AddConstant("one", kInt, {1}, std::vector{1});
       const int count = b.Op("RESHAPE", {turn, one}, {1}, kInt);
       const int rest = b.AddConstant("rest", kInt, {1}, std::vector{-1});
       const int size = b.Op("CONCATENATION", {count, rest}, {2}, kInt);
       const int zeros = b.AddConstant("zeros", kInt, {2}, std::vector{0, 0});
       const int axis = b.AddConstant("axis", kInt, {1}, std::vector{0});
       const int beginning = b.Op("SLICE", {all, zeros, size}, {1, 8});
       const int mean = b.Op("SUM", {beginning, axis}, {8});
       b.End({b.Next(turn), all, b.Op("ADD", {before, mean}, {1, 8})});
     },
     39},
};

TEST(SeenShapes, AreNotMadeAgain) {
  constexpr int kRuns = 6;
  for (const auto& [name, write, turns] : kModels) {
    SCOPED_TRACE(name);
    Builder b;
    write(b);
    const Delegated model(b);
    Interpreter* const host = model.host.get();
    ASSERT_NE(host, nullptr);
    const auto run = [&](int seed) {
      kernels::testing::Random random(seed);
      for (size_t i = 0; i < host->inputs().size(); ++i) {
        Fill(host->input(static_cast<int>(i)), random);
      }
      const int64_t before = heap_counts.taken;
      EXPECT_TRUE(host->Invoke().ok());
      return heap_counts.taken - before;
    };
    const auto runs = [&] {
      int64_t taken = 0;
      for (int seed = 1; seed <= kRuns; ++seed) taken += run(seed);
      return taken;
    };
    ASSERT_TRUE(host->AllocateTensors().ok());
    const int64_t first = runs();
    for (int again = 0; again < 2; ++again) runs();
    const int64_t held = heap_counts.held, again = runs();
    // What runs keep for their time, in lists by tensor; to make anything takes hundreds.
    EXPECT_LE(again, 20 * kRuns * turns) << first << " for the first time";
    EXPECT_EQ(heap_counts.held, held);
  }
}

TEST(SeenShapes, HoldTheMemoryOfOne) {
  constexpr int kMost = 1 << 14, kShapes = 40;
  constexpr int64_t kBetween = int64_t{kMost} * 8 * sizeof(float);  // values between the layers
  Builder b;
  b.End({b.Dense(b.Op("SOFTMAX", {b.Dense(b.In({kMost, 8}), {kMost, 8}, 8)}, {kMost, 8}),
                 {kMost, 8}, 8)});
  const Delegated model(b);
  Interpreter* const host = model.host.get();
  ASSERT_NE(host, nullptr);
  const auto run = [&](int rows) {
    EXPECT_TRUE(host->ResizeInput(0, std::array{rows, 8}).ok());
    EXPECT_TRUE(host->AllocateTensors().ok());
    kernels::testing::Random random(rows);
    Fill(host->input(0), random);
    EXPECT_TRUE(host->Invoke().ok());
  };
  const int64_t none = heap_counts.bytes;
  run(kMost);
  const int64_t first = heap_counts.bytes;
  EXPECT_GT(first - none, kBetween);
  for (int i = 1; i < kShapes; ++i) run(kMost - i);
  run(kMost - 1);  // made before
  // Parts of a batch are as large as its divisors let them be, and a shape keeps some kilobytes.
  EXPECT_LT(heap_counts.bytes - first, 4 * kBetween);
}

}  // namespace
}  // namespace fuselite::partitioner
