// Values that nodes compute of constants, and shapes that are not known before a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/generate/generate.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace testing;
using namespace tflite;

// y = x + c and y = x * c through enough layers to be worth a partition, with c = op(constant).
class ConstantsTest : public DelegateTest {
 protected:
  int Made(const char* op, int from) {
    const int made = host_.AddTensor({1, kWidth});
    host_.AddNode(op, {from}, {made});
    // Where somebody takes what the host has there, it shows.
    std::fill_n(host_.Floats(made), kWidth, 1e9f);
    return made;
  }
  int With(const char* op, int x, int constant) {
    const int out = host_.AddTensor({1, kWidth});
    host_.AddNode(op, {x, constant}, {out});
    return out;
  }
  // Seven nodes that change nothing of positive values.
  int Work(int x) {
    for (int i = 0; i < 7; ++i) {
      const int out = host_.AddTensor({1, kWidth});
      host_.AddNode("ABS", {x}, {out});
      x = out;
    }
    return x;
  }
  void Open() {
    Apply(DefaultOptions());
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  }
  // Runs with inputs of `x`, and `custom` for what the host's node in between gives.
  float RunWith(float x, int custom, float between, int out) {
    std::fill_n(host_.Floats(input_), kWidth, x);
    std::fill_n(host_.Floats(custom), kWidth, between);
    EXPECT_EQ(host_.Invoke(), kTfLiteOk);
    return host_.Floats(out)[kWidth - 1];
  }

  int three_ = host_.AddConstant({1, kWidth}, std::vector<float>(kWidth, 3.0f));
};

TEST_F(ConstantsTest, EveryPartitionComputesThemForItself) {
  const int four = Made("ABS", Made("NEG", three_));
  const int custom = Custom(Work(With("ADD", input_, four)));
  const int out = With("MUL", Work(With("ADD", custom, four)), four);
  host_.SetOutputs({out});
  Open();
  ASSERT_THAT(host_.kernels, SizeIs(2));
  EXPECT_EQ(RunWith(1, custom, 5, out), (5 + 3) * 3);
  EXPECT_EQ(RunWith(1, custom, 7, out), (7 + 3) * 3);
  EXPECT_EQ(host_.Floats(four)[0], 1e9f) << "nobody needs it in the host";
}

// The ways to them double with each node.
TEST_F(ConstantsTest, NodesOfEveryPartitionAreFollowedOnce) {
  int made = three_;
  for (int i = 0; i < 60; ++i) made = With("MAXIMUM", made, made);
  const int custom = Custom(Work(With("ADD", input_, made)));
  const int out = Work(With("MUL", custom, made));
  host_.SetOutputs({out});
  Open();
  host_.context.tensors[made].data.data = nullptr;  // the host has none of it
  EXPECT_EQ(RunWith(1, custom, 5, out), 15);
}

TEST_F(ConstantsTest, WhatTheHostReadsItComputes) {
  const int made = Made("NEG", three_), other = Made("ABS", three_);
  const int custom = host_.AddTensor({1, kWidth});
  host_.AddCustomNode("Foo", {Work(With("ADD", input_, other)), made}, {custom});
  const int out = Work(With("SUB", custom, made));
  host_.SetOutputs({out});
  Open();
  EXPECT_EQ(Reasons()[0],
            "node 10 custom operator Foo, which is left to the host, may need its result as a "
            "constant");
  EXPECT_EQ(Reasons()[1], "");
  // The partitions have it of their own all the same.
  EXPECT_EQ(RunWith(0, custom, 1, out), 1 + 3);
}

TEST_F(ConstantsTest, WhatIsMadeForTheHostIsMadeOfWhatItHas) {
  // NEG is needed by the host's node through ABS.
  const int made = Made("ABS", Made("NEG", three_));
  const int custom = host_.AddTensor({1, kWidth});
  host_.AddCustomNode("Foo", {Work(input_), made}, {custom});
  host_.SetOutputs({Work(custom)});
  Open();
  EXPECT_THAT(Reasons()[0], HasSubstr("node 1 ABS, which is left to the host"));
  EXPECT_THAT(Reasons()[1], HasSubstr("custom operator Foo, which is left to the host"));
}

// A partition whose shapes the run finds has them in its parts, and the host in none.
TEST_F(ConstantsTest, OfPartitionsInPartsAreInside) {
  const int made = Made("NEG", three_);
  const int custom = Custom(Work(With("ADD", input_, made)));
  const int shape = host_.AddTensor({2}, DataType::kInt32);
  const int rows = host_.AddTensor({}), sum = host_.AddTensor({});
  host_.AddNode("RESHAPE", {custom, shape}, {rows});
  host_.AddNode("ADD", {rows, made}, {sum});
  int out = sum;
  for (int i = 0; i < 7; ++i) {
    const int next = host_.AddTensor({});
    host_.AddNode("ABS", {out}, {next});
    out = next;
  }
  host_.SetOutputs({out});
  Open();
  ASSERT_THAT(host_.kernels, SizeIs(2));
  TfLiteTensor& unused = host_.context.tensors[made];
  EXPECT_EQ(unused.data.f[0], 1e9f);
  EXPECT_EQ(unused.allocation_type, kTfLiteArenaRw);
  unused.data.data = nullptr;
  auto* const dims = static_cast<int32_t*>(host_.Memory(shape));
  dims[0] = 1;
  dims[1] = kWidth;
  EXPECT_EQ(RunWith(1, custom, 5, out), 5 - 3);
}

// Its reader comes to be the host's for want of work, after the maker was taken.
TEST_F(ConstantsTest, WhatTheHostReadsAfterAllItComputes) {
  const int made = Made("NEG", three_);
  const int custom = Custom(Work(With("ADD", input_, made)));
  host_.SetOutputs({With("MUL", custom, made)});
  Open();
  EXPECT_THAT(Reasons().back(), HasSubstr("too little work"));
  EXPECT_THAT(Reasons().front(), HasSubstr("MUL, which is left to the host"));
  ASSERT_THAT(host_.kernels, SizeIs(1));
  EXPECT_EQ(delegate_->Explain().graphs[0].partitions.at(0).nodes, host_.kernels[0]);
}

TEST_F(ConstantsTest, OutputsOfTheGraphAreGiven) {
  const int made = Made("NEG", three_);
  const int out = Work(With("SUB", input_, made));
  host_.SetOutputs({made, out});
  Open();
  EXPECT_THAT(std::span(host_.Floats(made), kWidth), Each(-3));
  EXPECT_EQ(RunWith(2, input_, 2, out), 5);
}

// A FILL of a small file can ask for gigabytes, all of them ahead of the first run.
TEST_F(ConstantsTest, OutputsOfTheGraphAreHeldToTheBudgetBeforeTheyAreMade) {
  // Nine of 64 floats, and less than that in the run.
  std::vector<int> outputs;
  for (int i = 0; i < 9; ++i) outputs.push_back(Made("NEG", three_));
  outputs.push_back(Work(input_));
  host_.SetOutputs(outputs);
  struct Case {
    Budget budget;
    const char* message;  // null: within
  };
  const Case cases[] = {{{9 * 256, 0}, nullptr},
                        {{9 * 256 - 1, 0}, "asks for 2.3 kB of memory"},
                        {{0, 9 * 64}, nullptr},
                        {{0, 9 * 64 - 1}, "takes 576 multiply-adds"}};
  for (const Case& c : cases) {
    Options options = DefaultOptions();
    options.budget = c.budget;
    Apply(options);
    host_.errors.clear();
    EXPECT_EQ(host_.Prepare() == kTfLiteOk, c.message == nullptr);
    if (c.message == nullptr) continue;
    ASSERT_THAT(host_.errors, SizeIs(1));
    EXPECT_THAT(host_.errors[0], HasSubstr(c.message));
  }
}

// More than is computed while judging, of a row that is not there.
TEST_F(ConstantsTest, WhatCannotBeComputedFailsWhenItIsPrepared) {
  const int rows = host_.AddConstant({2, kWidth}, std::vector<float>(2 * kWidth, 3.0f));
  const int made = host_.AddTensor({2, kWidth});
  host_.AddNode("GATHER", {rows, host_.AddConstant({2}, std::vector<int32_t>{0, 7})}, {made});
  host_.SetOutputs({made, Work(input_)});
  Apply(DefaultOptions());
  EXPECT_EQ(host_.Prepare(), kTfLiteError);
  ASSERT_THAT(host_.errors, SizeIs(1));
  EXPECT_THAT(host_.errors[0], HasSubstr("GATHER: "));
}

TEST_F(ConstantsTest, WhatIsDeniedIsAValueOfTheRun) {
  const int made = Made("NEG", three_);
  const int out = Work(With("SUB", input_, made));
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.ops_deny = {"NEG"};
  Apply(options);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  std::fill_n(host_.Floats(made), kWidth, -4.0f);
  EXPECT_EQ(RunWith(2, input_, 2, out), 6);
}

// The file states open dimensions as 1: what does not fit then may fit later.
class OpenShapesTest : public DelegateTest {
 protected:
  std::vector<std::string> Judge(const std::vector<int>& signature, int width) {
    const int x = host_.AddTensor({1, width});
    const IntArrayPtr open = MakeIntArray(signature);
    host_.context.tensors[x].dims_signature = open.get();
    input_ = x;
    out_ = Layer(x);
    host_.SetOutputs({out_});
    Apply(DefaultOptions());
    host_.context.tensors[x].dims_signature = nullptr;
    return Reasons();
  }
  int out_ = -1;
};

TEST_F(OpenShapesTest, AreTakenAndComputedOnceTheyFit) {
  EXPECT_THAT(Judge({1, -1}, 1), ElementsAre(""));
  EXPECT_THAT(delegate_->Explain().graphs[0].verdicts[0].shapes, "");
  EXPECT_EQ(host_.Prepare(), kTfLiteError) << "they do not fit yet";
  host_.Resize(input_, {2, kWidth});
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  std::fill_n(host_.Floats(input_), 2 * kWidth, 1.0f);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  EXPECT_EQ(host_.ShapeOf(out_), Shape({2, kWidth}));
  const std::vector<double> expected =
      Expected(host_.Floats(input_), Ramp(kWidth * kWidth), kWidth);
  for (int i = 0; i < kWidth; ++i) EXPECT_EQ(host_.Floats(out_)[kWidth + i], expected[i]) << i;
}

TEST_F(OpenShapesTest, FixedOnesThatDoNotFitAreTheHosts) {
  EXPECT_THAT(Judge({1, 1}, 1), ElementsAre(HasSubstr("does not divide into rows of 64")));
}

TEST_F(OpenShapesTest, OnesThatFitAreJudgedByWhatTheyAre) {
  EXPECT_THAT(Judge({-1, kWidth}, kWidth), ElementsAre(""));
  EXPECT_THAT(delegate_->Explain().graphs[0].verdicts[0].shapes, "float32[1,64]");
}

// What a node behind an unknown shape makes is unknown, too, and what it says nothing about may
// fit.
TEST_F(OpenShapesTest, ArePassedOn) {
  const int shape = host_.AddTensor({2}, DataType::kInt32);
  const int between = host_.AddTensor({}), after = host_.AddTensor({});
  host_.AddNode("RESHAPE", {input_, shape}, {between});
  host_.AddNode("ABS", {between}, {after});
  const int out = Layer(after);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(Reasons(), Each(""));
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  auto* const dims = static_cast<int32_t*>(host_.Memory(shape));
  dims[0] = 1;
  dims[1] = kWidth;
  ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
  EXPECT_EQ(host_.ShapeOf(out), Shape({1, kWidth}));
}

// Their types are known before the run, and nobody computes some.
TEST_F(OpenShapesTest, OfTypesThatNobodyTakesAreTheHosts) {
  const int x = host_.AddTensor({1, kWidth}, DataType::kBool);
  const int shape = host_.AddTensor({2}, DataType::kInt32);
  const int between = host_.AddTensor({}, DataType::kBool);
  const int out = host_.AddTensor({}, DataType::kBool);
  host_.AddNode("RESHAPE", {x, shape}, {between});
  host_.AddNode("EXP", {between}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(Reasons()[1], HasSubstr("bool"));
}

// Where true elements are: as many rows as there are, which every run finds anew.
TEST_F(OpenShapesTest, OfManyValuesAreFoundInEachRun) {
  for (const int count : {8, 100}) {
    const int x = host_.AddTensor({count}, DataType::kBool);
    const int rows = host_.AddTensor({}, DataType::kInt64);
    const int out = host_.AddTensor({}, DataType::kInt64);
    host_.nodes.clear();
    host_.registrations.clear();
    host_.AddNode("WHERE", {x}, {rows});
    host_.AddNode("NEG", {rows}, {out});
    host_.SetOutputs({out});
    Apply(DefaultOptions());
    ASSERT_THAT(host_.kernels, SizeIs(1)) << Reasons()[0] << Reasons()[1];
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    for (const int step : {2, 3, 2, 1000}) {
      SCOPED_TRACE(step);
      auto* const values = static_cast<bool*>(host_.Memory(x));
      std::vector<int64_t> expected;
      for (int i = 0; i < count; ++i) {
        values[i] = i % step == 1;
        if (values[i]) expected.push_back(-i);
      }
      ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
      ASSERT_EQ(host_.ShapeOf(out), Shape({static_cast<int32_t>(expected.size()), 1}));
      const auto* const actual = static_cast<const int64_t*>(host_.Memory(out));
      EXPECT_TRUE(std::ranges::equal(expected, std::span(actual, expected.size())));
    }
  }
}

}  // namespace
}  // namespace fuselite::partitioner
