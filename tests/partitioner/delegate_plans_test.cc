// What a delegate does once and keeps: what it learnt of a graph, plans, reports, memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "kernels/generate/generate.h"
#include "partitioner/delegate_kernel.h"
#include "runtime/cpu/cpu.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace testing;
using namespace tflite;

// Each new plan writes the file of explanations, so that a file that stays away is a plan that was
// not made.
class PlansTest : public DelegateTest {
 protected:
  void SetUp() override { options_.explain_file = file_; }
  void TearDown() override { std::filesystem::remove(file_); }

  // Whether the delegate has reported since this was asked last.
  bool Reported() const { return std::filesystem::remove(file_); }
  PartitionReport Plan(int partition = 0) const {
    return delegate_->Explain().graphs.at(0).partitions.at(partition);
  }
  void Open(const std::vector<int>& outputs) {
    host_.SetOutputs(outputs);
    Apply(options_);
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    Reported();
  }
  bool Plans(const Shape& shape) {
    host_.Resize(input_, shape);
    EXPECT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    EXPECT_EQ(host_.Invoke(), kTfLiteOk);
    return Reported();
  }
  // RESHAPE of the input to a shape that is a value of the run, and what `op` makes of that.
  int Reshaped(const char* op) {
    shape_ = host_.AddTensor({2}, DataType::kInt32);
    const int between = host_.AddTensor({}), out = host_.AddTensor({});
    host_.AddNode("RESHAPE", {input_, shape_}, {between});
    host_.AddNode(op, {between}, {out});
    // As LiteRT has tensors whose shapes it does not know.
    for (const int tensor : {between, out}) {
      host_.context.tensors[tensor].allocation_type = kTfLiteDynamic;
    }
    return out;
  }
  TfLiteStatus InvokeTo(int32_t rows, int32_t columns) {
    auto* const dims = static_cast<int32_t*>(host_.Memory(shape_));
    dims[0] = rows;
    dims[1] = columns;
    return host_.Invoke();
  }

  const std::string file_ = ::testing::TempDir() + "fuselite_plans.txt";
  Options options_ = DefaultOptions();
  int shape_ = -1;
};

TEST_F(PlansTest, KernelsKnowTheNodesFromTheJudgement) {
  host_.SetOutputs({Layers(Custom(Layers(input_, 4)), 5)});
  Apply(options_);
  ASSERT_THAT(host_.kernels, SizeIs(2));
  EXPECT_EQ(host_.nodes_shown, 0);
}

TEST_F(PlansTest, PartitionsOtherThanTheHostSaidAreReadAnew) {
  const int out = Layers(input_, 3);
  host_.SetOutputs({out});
  host_.splits_later = true;
  Apply(options_);
  ASSERT_THAT(host_.kernels, SizeIs(3));
  EXPECT_GT(host_.nodes_shown, 0);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  for (int i = 0; i < kWidth; ++i) host_.Floats(input_)[i] = i == 3 ? 1 : 0;
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  const std::vector<float> weights = Ramp(kWidth * kWidth);
  std::vector<float> row(host_.Floats(input_), host_.Floats(input_) + kWidth);
  for (int layer = 0; layer < 3; ++layer) {
    const std::vector<double> next = Expected(row.data(), weights, kWidth);
    row.assign(next.begin(), next.end());
  }
  for (int i = 0; i < kWidth; ++i) EXPECT_EQ(host_.Floats(out)[i], row[i]) << i;
}

TEST_F(PlansTest, WhatIsPreparedAgainIsNeitherPlannedNorReportedAgain) {
  Open({Layers(input_, 2)});
  EXPECT_FALSE(Plans({1, kWidth}));
  EXPECT_FALSE(Plans({1, kWidth}));
  EXPECT_TRUE(Plans({2, kWidth}));
  EXPECT_EQ(Plan().report.steps.at(0).output_shape, "[2,64]");
}

TEST_F(PlansTest, SoManyShapesAreKept) {
  constexpr int kKept = 128;
  Open({Layers(input_, 2)});
  for (int rows = 2; rows <= kKept; ++rows) EXPECT_TRUE(Plans({rows, kWidth})) << rows;
  for (int rows = 1; rows <= kKept; ++rows) EXPECT_FALSE(Plans({rows, kWidth})) << rows;
  // One more, and the one that was used longest ago is forgotten.
  EXPECT_TRUE(Plans({kKept + 1, kWidth}));
  EXPECT_FALSE(Plans({2, kWidth}));
  EXPECT_TRUE(Plans({1, kWidth}));
}

TEST_F(PlansTest, AnotherNumberOfThreadsIsPlannedFor) {
  Open({Layers(input_, 2)});
  EXPECT_EQ(Plan().threads, 1);
  for (const int threads : {2, 3}) {
    host_.context.recommended_num_threads = threads;
    EXPECT_TRUE(Plans({1, kWidth}));
    EXPECT_EQ(Plan().threads, threads);
    EXPECT_FALSE(Plans({1, kWidth}));
  }
}

TEST_F(PlansTest, ValuesSeenBeforeArePlannedOnce) {
  const int out = Reshaped("EXP");
  Open({out});
  EXPECT_THAT(Plan().waiting_nodes, ElementsAre(0));
  for (const bool seen : {false, true}) {
    for (const int32_t rows : {2, 4, 8}) {
      ASSERT_EQ(InvokeTo(rows, kWidth / rows), kTfLiteOk) << host_.errors.back();
      EXPECT_EQ(Reported(), !seen) << rows;
      EXPECT_EQ(host_.ShapeOf(out), Shape({rows, kWidth / rows}));
    }
  }
  EXPECT_THAT(Plan().waiting_nodes, ElementsAre(0));
  EXPECT_THAT(Plan().report.steps, SizeIs(2));
}

// Where they are does not matter, of more values than plans are told apart by.
TEST_F(PlansTest, CountsSeenBeforeArePlannedOnce) {
  const int x = host_.AddTensor({100}, DataType::kBool);
  const int found = host_.AddTensor({}, DataType::kInt64);
  const int out = host_.AddTensor({}, DataType::kInt64);
  host_.AddNode("WHERE", {x}, {found});
  host_.AddNode("NEG", {found}, {out});
  Open({out});
  for (const int first : {0, 40}) {
    for (const int count : {3, 5}) {
      auto* const values = static_cast<bool*>(host_.Memory(x));
      for (int i = 0; i < 100; ++i) values[i] = i >= first && i < first + count;
      ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
      EXPECT_EQ(Reported(), first == 0) << count;
      ASSERT_EQ(host_.ShapeOf(out), Shape({count, 1}));
      EXPECT_EQ(static_cast<const int64_t*>(host_.Memory(out))[0], -first);
    }
  }
}

TEST_F(PlansTest, OutputsOfTheSameShapeStayWhereTheyAre) {
  const int out = Reshaped("EXP");
  Open({out});
  ASSERT_EQ(InvokeTo(2, 32), kTfLiteOk);
  const void* const first = host_.Memory(out);
  ASSERT_EQ(InvokeTo(2, 32), kTfLiteOk);
  EXPECT_EQ(host_.Memory(out), first);
  ASSERT_EQ(InvokeTo(4, 16), kTfLiteOk);
  EXPECT_NE(host_.Memory(out), first);
}

// Until a run, nobody may take what the last shapes left for their values.
TEST_F(PlansTest, OutputsOfUnknownShapeHaveNoMemoryBeforeARun) {
  const int out = Reshaped("EXP");
  const int between = out - 1;
  for (const int tensor : {between, out}) {
    host_.context.tensors[tensor].allocation_type = kTfLiteArenaRw;
  }
  Open({out});
  EXPECT_EQ(host_.context.tensors[out].allocation_type, kTfLiteDynamic);
  EXPECT_EQ(host_.context.tensors[between].allocation_type, kTfLiteArenaRw);  // ours alone
  EXPECT_EQ(host_.Memory(out), nullptr);
  // What a run has given is left alone.
  ASSERT_EQ(InvokeTo(2, 32), kTfLiteOk);
  const void* const given = host_.Memory(out);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  EXPECT_EQ(host_.Memory(out), given);
}

TEST_F(PlansTest, OutputsWithoutElementsHaveAShapeAndNoMemory) {
  input_ = host_.AddTensor({0, 4});
  const int out = Reshaped("EXP");
  host_.context.tensors[out].data.data = nullptr;
  Open({out});
  for (const auto& [rows, columns] : {std::pair{3, 0}, {0, 2}, {0, 2}}) {
    ASSERT_EQ(InvokeTo(rows, columns), kTfLiteOk) << host_.errors.back();
    EXPECT_EQ(host_.ShapeOf(out), Shape({rows, columns}));
    EXPECT_EQ(host_.context.tensors[out].allocation_type, kTfLiteDynamic);
    EXPECT_EQ(host_.Memory(out), nullptr);
  }
}

// Memory that the user has given to an output is neither exchanged nor forgotten.
TEST_F(PlansTest, OutputsInMemoryOfTheUserAreWrittenThere) {
  const int out = Reshaped("EXP");
  TfLiteTensor& tensor = host_.context.tensors[out];
  std::vector<float> memory(kWidth);
  tensor.allocation_type = kTfLiteCustom;
  tensor.data.f = memory.data();
  tensor.bytes = sizeof(float) * kWidth;
  Open({out});
  EXPECT_EQ(tensor.data.f, memory.data());
  ASSERT_EQ(InvokeTo(2, 32), kTfLiteOk) << host_.errors.back();
  EXPECT_EQ(tensor.allocation_type, kTfLiteCustom);
  EXPECT_THAT(memory, Each(1));  // of zeros
}

// SHAPE of the input: known as soon as the input's shape is.
class ConstantOutputTest : public PlansTest {
 protected:
  ConstantOutputTest() {
    const kernels::Params as_int(kernels::ShapeParams{.out_type = DataType::kInt32});
    host_.AddNode("SHAPE", {input_}, {out_}, &as_int);
  }
  std::vector<int32_t> Values() {
    const auto* const values = static_cast<const int32_t*>(host_.Memory(out_));
    return {values, values + 2};
  }

  int out_ = host_.AddTensor({2}, DataType::kInt32);
};

TEST_F(ConstantOutputTest, IsThereBeforeTheRun) {
  Open({out_});
  EXPECT_EQ(host_.context.tensors[out_].allocation_type, kTfLitePersistentRo);
  EXPECT_THAT(Values(), ElementsAre(1, kWidth));
  host_.Resize(input_, {5, kWidth});
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  EXPECT_THAT(Values(), ElementsAre(5, kWidth));
}

// Dynamic memory is the tensor's own, and goes on to be.
TEST_F(ConstantOutputTest, TakesTheMemoryThatItsTensorHas) {
  TfLiteTensor& tensor = host_.context.tensors[out_];
  tensor.allocation_type = kTfLiteDynamic;
  ASSERT_EQ(
      host_.context.ResizeTensor(&host_.context, &tensor, MakeIntArray(std::vector{2}).release()),
      kTfLiteOk);
  Open({out_});
  EXPECT_EQ(tensor.allocation_type, kTfLitePersistentRo);
  EXPECT_THAT(Values(), ElementsAre(1, kWidth));
}

TEST_F(ConstantOutputTest, IsWrittenIntoMemoryOfTheUserByEachRun) {
  std::vector<int32_t> memory(2);
  TfLiteTensor& tensor = host_.context.tensors[out_];
  tensor.allocation_type = kTfLiteCustom;
  tensor.data.data = memory.data();
  Open({out_});
  for (int run = 0; run < 2; ++run) {
    std::ranges::fill(memory, -1);
    ASSERT_EQ(host_.Invoke(), kTfLiteOk);
    EXPECT_THAT(memory, ElementsAre(1, kWidth));
  }
  EXPECT_EQ(tensor.allocation_type, kTfLiteCustom);
  tensor.bytes = 4;
  EXPECT_EQ(host_.Invoke(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("no memory"));
}

// So is what nodes make of constants alone.
TEST_F(PlansTest, ConstantsThatNodesMakeAreThereBeforeTheRun) {
  const int between = host_.AddTensor({3}), out = host_.AddTensor({3});
  host_.AddNode("ABS", {host_.AddConstant({3}, std::vector<float>{1, -2, 3})}, {between});
  host_.AddNode("NEG", {between}, {out});
  Open({out, Layer(input_)});
  EXPECT_EQ(host_.context.tensors[out].allocation_type, kTfLitePersistentRo);
  EXPECT_THAT(std::vector<float>(host_.Floats(out), host_.Floats(out) + 3),
              ElementsAre(-1, -2, -3));
}

TEST_F(PlansTest, EventsAreKeptForWhoeverWantsThem) {
  for (const bool wanted : {false, true}) {
    Options options = DefaultOptions();
    options.profile_file = file_;
    options.keep_events = wanted;
    host_.SetOutputs({Layers(input_, 2)});
    Apply(options);
    ASSERT_EQ(host_.Prepare(), kTfLiteOk);
    ASSERT_EQ(host_.Invoke(), kTfLiteOk);
    host_.DropKernels();
    EXPECT_THAT(delegate_->state()->profile().Times(), Not(IsEmpty()));
    const std::vector<PartitionEvents> events = delegate_->state()->profile().Events();
    ASSERT_THAT(events, SizeIs(wanted ? 1 : 0));
    if (!wanted) continue;
    EXPECT_EQ(events[0].first_node, 0);
    EXPECT_FALSE(events[0].events.empty());
  }
}

TEST_F(PlansTest, NothingIsMeasuredForNobody) {
  Open({Layers(input_, 2)});
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  host_.DropKernels();
  EXPECT_THAT(delegate_->state()->profile().Times(), IsEmpty());
}

TEST_F(PlansTest, KernelsThatWereNotMadeSayIt) {
  Open({Layer(input_)});
  const TfLiteRegistration registration = DelegateKernel::Registration(*delegate_->state());
  EXPECT_EQ(registration.init(&host_.context, nullptr, 0), nullptr);
  EXPECT_THAT(host_.errors, ElementsAre(HasSubstr("no partition")));
  TfLiteNode node{};
  EXPECT_EQ(registration.prepare(&host_.context, &node), kTfLiteError);
  EXPECT_EQ(registration.invoke(&host_.context, &node), kTfLiteError);
  EXPECT_THAT(host_.errors, SizeIs(3));
  EXPECT_THAT(host_.errors.back(), HasSubstr("was not read"));
  registration.free(&host_.context, nullptr);
}

TEST_F(PlansTest, InputsThatShrankWithoutANewPlanAreAnError) {
  Open({Layer(input_)});
  host_.Resize(input_, {1, kWidth / 2});
  EXPECT_EQ(host_.Invoke(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("128 bytes instead of 256"));
  EXPECT_FALSE(Reported());
}

// Where a run finds its shapes, it finds its memory as well.
TEST_F(PlansTest, InputsWithoutMemoryAreAnErrorOfTheRun) {
  const int out = Reshaped("EXP");
  Open({out});
  void* const memory = std::exchange(host_.context.tensors[input_].data.data, nullptr);
  EXPECT_EQ(InvokeTo(2, 32), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("the host changed tensor 0"));
  host_.context.tensors[input_].data.data = memory;
  EXPECT_EQ(InvokeTo(2, 32), kTfLiteOk);
}

}  // namespace
}  // namespace fuselite::partitioner
