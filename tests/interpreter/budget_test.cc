// Models that ask for more than their budget, in fuselite's own interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const kernels::OperatorDef& Op(const char* name) { return *kernels::FindOperator(name); }

// y = FULLY_CONNECTED(x), from [rows, 64] to [rows, 64].
std::unique_ptr<Interpreter> OpenLayer(const Budget& budget) {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {1, 64});
  const int weights = writer.AddConstant<float>("weights", DataType::kFloat32, {64, 64},
                                                std::vector<float>(64 * 64, 1.0f));
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 64});
  writer.AddOperator(Op("FULLY_CONNECTED"), {in, weights, -1}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  InterpreterOptions options;
  options.budget = budget;
  return Open(writer, options);
}

// y = FILL(dims, 1), whose shape is known in the run only.
std::unique_ptr<Interpreter> OpenFill(const Budget& budget) {
  ModelWriter writer;
  const int dims = writer.AddTensor("dims", DataType::kInt32, {2});
  const int value = writer.AddConstant<float>("value", DataType::kFloat32, {}, {1.0f});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 1});
  writer.AddOperator(Op("FILL"), {dims, value}, {out});
  writer.SetInputs({dims});
  writer.SetOutputs({out});
  InterpreterOptions options;
  options.budget = budget;
  return Open(writer, options);
}

// y = as many zeros as x says, which the file says to be `declared`.
std::unique_ptr<Interpreter> OpenCount(const Budget& budget, int32_t declared) {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {1});
  const int out = writer.AddTensor("out", DataType::kFloat32, {declared});
  writer.AddCustomOperator("Count", {}, {in}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  InterpreterOptions options;
  options.budget = budget;
  return Open(writer, options);
}

TEST(BudgetTest, WithoutLimitsNothingIsRefused) {
  EXPECT_TRUE(Budget{}.CheckMemory(1e30).ok());
  EXPECT_TRUE(Budget{}.CheckMultiplyAdds(1e30).ok());
}

TEST(BudgetTest, ErrorsHaveTheNumberAskedForAndTheLimit) {
  const Budget budget{2e9, 1e12};
  EXPECT_TRUE(budget.CheckMemory(2e9).ok());
  EXPECT_THAT(budget.CheckMemory(8.6e9).message(), AllOf(HasSubstr("8.6 GB"), HasSubstr("2 GB")));
  EXPECT_EQ(budget.CheckMemory(8.6e9).code(), StatusCode::kOverBudget);
  EXPECT_TRUE(budget.CheckMultiplyAdds(1e12).ok());
  EXPECT_EQ(budget.CheckMultiplyAdds(9.996e14).ToString().substr(0, 12), "over budget:");
  EXPECT_THAT(budget.CheckMultiplyAdds(9.996e14).message(),
              AllOf(HasSubstr("takes 1 P multiply-adds"), HasSubstr("allows 1 T")));
}

TEST(BudgetTest, WorkIsCountedAgainAfterAResize) {
  const auto interpreter = OpenLayer({0, 10 * 64 * 64});
  EXPECT_TRUE(interpreter->AllocateTensors().ok());
  ASSERT_TRUE(interpreter->ResizeInput(0, std::vector<int32_t>{10, 64}).ok());
  EXPECT_TRUE(interpreter->AllocateTensors().ok());
  ASSERT_TRUE(interpreter->ResizeInput(0, std::vector<int32_t>{11, 64}).ok());
  EXPECT_THAT(interpreter->AllocateTensors().message(), HasSubstr("45.1 k multiply-adds"));
  ASSERT_TRUE(interpreter->ResizeInput(0, std::vector<int32_t>{3, 64}).ok());
  EXPECT_TRUE(interpreter->AllocateTensors().ok()) << "a refusal is not for ever";
}

// What lies in the file is not asked of the machine; what the run needs is counted once.
TEST(BudgetTest, ConstantsAreNotCounted) {
  const auto interpreter = OpenLayer({8 << 10, 0});  // two values of 2,560 bytes, weights of 16 KiB
  ASSERT_TRUE(interpreter->ResizeInput(0, std::vector<int32_t>{10, 64}).ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = interpreter->AllocateTensors();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(BudgetTest, MemoryIsRefusedBeforeItIsTaken) {
  const auto interpreter = OpenLayer({1 << 20, 0});
  EXPECT_TRUE(interpreter->AllocateTensors().ok());
  // 2 x 400 GB, which no machine of a test has.
  ASSERT_TRUE(interpreter->ResizeInput(0, std::vector<int32_t>{1'600'000'000, 64}).ok());
  EXPECT_THAT(interpreter->AllocateTensors().message(), HasSubstr("max_memory allows 1.05 MB"));
}

TEST(BudgetTest, ShapesOfTheRunAreHeldToIt) {
  const auto run = [](const Budget& budget, int32_t rows, int32_t columns) {
    const auto interpreter = OpenFill(budget);
    Status status = interpreter->AllocateTensors();
    if (!status.ok()) return status;
    const std::vector<int32_t> dims = {rows, columns};
    std::ranges::copy(dims, static_cast<int32_t*>(interpreter->input(0).data));
    return interpreter->Invoke();
  };
  EXPECT_TRUE(run({1 << 20, 1 << 20}, 1000, 100).ok());
  EXPECT_THAT(run({1 << 20, 0}, 1000, 1000).message(), HasSubstr("4 MB"));
  EXPECT_THAT(run({0, 1 << 20}, 2000, 1000).message(), HasSubstr("2 M multiply-adds"));
}

// What a tensor has already is not counted again, and one that shrinks asks for nothing.
TEST(BudgetTest, TensorsOfTheRunMayGrowAndShrinkWithinIt) {
  const auto interpreter = OpenCount({1 << 20, 0}, 1);
  ASSERT_OK(interpreter->AllocateTensors());
  const auto run = [&](float count) {
    *static_cast<float*>(interpreter->input(0).data) = count;
    return interpreter->Invoke();
  };
  for (const float count : {100'000.0f, 250'000.0f, 20'000.0f, 17'000.0f, 1.0f, 250'000.0f}) {
    const Status status = run(count);
    EXPECT_TRUE(status.ok()) << count << ": " << status.ToString();
  }
  EXPECT_THAT(run(270'000).message(), HasSubstr("asks for 1.08 MB"));
  EXPECT_TRUE(run(30'000).ok());
}

// What several tensors hold adds up: of the run, and of constants that nodes make ahead of it.
TEST(BudgetTest, TensorsOfTheRunAddUp) {
  for (const bool made : {false, true}) {
    for (const int32_t other : {100'000, 150'000}) {
      ModelWriter writer;
      const int in = writer.AddTensor("in", DataType::kFloat32, {1});
      const int first = writer.AddTensor("first", DataType::kFloat32, {1});
      const int second = writer.AddTensor("second", DataType::kFloat32, {1});
      if (made) {
        const int dims = writer.AddConstant<int32_t>("dims", DataType::kInt32, {1}, {other});
        const int one = writer.AddConstant<float>("one", DataType::kFloat32, {}, {1.0f});
        writer.AddOperator(Op("FILL"), {dims, one}, {first});
      } else {
        writer.AddCustomOperator("Count", {}, {in}, {first});
      }
      writer.AddCustomOperator("Count", {}, {in}, {second});
      writer.SetInputs({in});
      writer.SetOutputs({first, second});
      InterpreterOptions options;
      options.budget = {1 << 20, 0};
      const auto interpreter = Open(writer, options);
      ASSERT_OK(interpreter->AllocateTensors());
      *static_cast<float*>(interpreter->input(0).data) = static_cast<float>(other);
      EXPECT_EQ(interpreter->Invoke().ok(), other == 100'000) << made;
    }
  }
}

// As large as the file says, of which nothing is there before the run.
TEST(BudgetTest, TensorsOfTheRunAreHeldToItWhereTheyAreAsTheFileSays) {
  const auto interpreter = OpenCount({1 << 20, 0}, 500'000);
  ASSERT_OK(interpreter->AllocateTensors());
  *static_cast<float*>(interpreter->input(0).data) = 500'000;
  EXPECT_THAT(interpreter->Invoke().message(), HasSubstr("asks for 2 MB"));
}

}  // namespace
}  // namespace fuselite::interpreter
