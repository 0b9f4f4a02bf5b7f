// What a delegate says of its partitions, and what it makes of a host's lists and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/generate/generate.h"
#include "partitioner/claim/choose_partitions.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace testing;
using namespace tflite;

using ReportsTest = DelegateTest;

// LiteRT lists operands that are left out among a partition's inputs.
TEST(HostPartitionTest, HasNoInputsThatAreLeftOut) {
  const IntArrayPtr nodes = MakeIntArray(std::vector{0, 1}),
                    inputs = MakeIntArray(std::vector{3, -1, 4, -1}),
                    outputs = MakeIntArray(std::vector{5});
  TfLiteDelegateParams params{};
  params.nodes_to_replace = nodes.get();
  params.input_tensors = inputs.get();
  params.output_tensors = outputs.get();
  const HostPartition host = HostPartition::Of(params);
  EXPECT_THAT(host.nodes, ElementsAre(0, 1));
  EXPECT_THAT(host.inputs, ElementsAre(3, 4));
  EXPECT_THAT(host.outputs, ElementsAre(5));
}

// What no cache holds decides how products read their weights.
TEST_F(ReportsTest, CountsTheBytesOfConstants) {
  host_.SetOutputs({Layers(input_, 3)});
  Apply(DefaultOptions());
  const fusion::CompileOptions options = delegate_->state()->CompileOptionsFor(&host_.context);
  EXPECT_EQ(options.constant_bytes, 3 * 4 * kWidth * kWidth);
}

TEST_F(ReportsTest, TellsEachPartitionsOwnPlan) {
  host_.SetOutputs({Layers(Custom(Layers(input_, 4)), 5)});
  Apply(DefaultOptions());
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  const GraphReport report = delegate_->Explain().graphs.at(0);
  ASSERT_THAT(report.partitions, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(report.partitions[i].compiled) << i;
    EXPECT_EQ(report.partitions[i].nodes, host_.kernels[i]);
    EXPECT_THAT(report.partitions[i].report.steps, SizeIs(i == 0 ? 4 : 5));
    EXPECT_GT(report.partitions[i].cost, 0) << "as it was judged";
  }
}

// The explanation is that of the last time that the host has prepared the partition.
TEST_F(ReportsTest, IsExplainedAsItWasLastPrepared) {
  host_.SetOutputs({Layers(input_, 4)});
  Options options = DefaultOptions();
  options.budget.max_memory = 4096;
  Apply(options);
  const auto report = [&] { return delegate_->Explain().graphs.at(0).partitions.at(0); };
  for (const int rows : {1, 1000, 1}) {
    host_.Resize(input_, {rows, kWidth});
    EXPECT_EQ(host_.Prepare() == kTfLiteOk, rows == 1);
    EXPECT_EQ(report().compiled, rows == 1);
    EXPECT_EQ(report().error.empty(), rows == 1);
  }
}

TEST_F(ReportsTest, CountsNodesInWords) {
  const int custom = Custom(Layers(input_, 4)), out = host_.AddTensor({1, kWidth});
  host_.AddNode("ABS", {custom}, {out});
  const int last = host_.AddTensor({1, kWidth}), two = host_.AddTensor({1, kWidth});
  host_.AddNode("ABS", {Custom(out)}, {two});
  host_.AddNode("NEG", {two}, {last});
  host_.SetOutputs({last});
  Apply(DefaultOptions());
  EXPECT_THAT(Reasons()[5], HasSubstr("its partition (1 node) has"));
  EXPECT_THAT(Reasons()[7], HasSubstr("its partition (2 nodes) has"));
}

TEST_F(ReportsTest, LimitsNoFewerPartitionsThanThereAre) {
  host_.SetOutputs({Layers(Custom(Layers(input_, 4)), 5)});
  Options options = DefaultOptions();
  options.max_partitions = 100;
  Apply(options);
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4), SizeIs(5)));
}

TEST_F(ReportsTest, AsksForNoPartitionsOfNothing) {
  Custom(input_);
  host_.fail_preview = true;
  Apply(DefaultOptions());
  EXPECT_EQ(delegate_->Explain().graphs[0].error, "");
}

// A node that is not shown any more when its kernel is made, alone, as nobody had said.
TEST_F(ReportsTest, KernelsOfNodesThatAreNotShownAreNotMade) {
  host_.SetOutputs({Layers(input_, 2)});
  host_.splits_later = true;
  delegate_ = std::make_unique<Delegate>(DefaultOptions());
  static FakeHost* hides;
  hides = &host_;
  static TfLiteStatus (*replace)(TfLiteContext*, TfLiteRegistration, const TfLiteIntArray*,
                                 TfLiteDelegate*);
  // Set by the host while a delegate is applied; whoever reads it then hides a node.
  const auto apply = delegate_->c_struct()->Prepare;
  static decltype(delegate_->c_struct()->Prepare) prepare;
  prepare = apply;
  TfLiteDelegate hiding = *delegate_->c_struct();
  hiding.Prepare = [](TfLiteContext* context, TfLiteDelegate* self) {
    replace = context->ReplaceNodeSubsetsWithDelegateKernels;
    context->ReplaceNodeSubsetsWithDelegateKernels =
        [](TfLiteContext* inner, TfLiteRegistration registration, const TfLiteIntArray* nodes,
           TfLiteDelegate* delegate) {
          hides->shows = {{1, FakeHost::Shows::kError}};
          return replace(inner, registration, nodes, delegate);
        };
    return prepare(context, self);
  };
  EXPECT_EQ(host_.Apply(&hiding), kTfLiteOk);
  EXPECT_EQ(host_.Prepare(), kTfLiteError);
  EXPECT_THAT(host_.errors,
              ElementsAre("fuselite: prepare: node 1: the host does not show the node."));
}

// What a graph computes of shapes is known in either width before the run.
TEST_F(ReportsTest, ShapesOf64BitsAreKnownBeforeTheRun) {
  const int x = host_.AddTensor({2, 3}), shape = host_.AddTensor({2}, DataType::kInt64);
  const kernels::Params wide(kernels::ShapeParams{.out_type = DataType::kInt64});
  host_.AddNode("SHAPE", {x}, {shape}, &wide);
  const int row = host_.AddTensor({1, 3}), out = host_.AddTensor({});
  host_.AddNode("BROADCAST_TO", {row, shape}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  EXPECT_THAT(delegate_->Explain().graphs[0].partitions.at(0).waiting_nodes, ::testing::IsEmpty());
  EXPECT_EQ(host_.ShapeOf(out), Shape({2, 3}));
}

// The result's shape depends on a value of the run and on the input's shape; two of the input's
// shapes have as many elements.
TEST_F(ReportsTest, ShapesAndValuesOfARunAreOnePlanTogether) {
  const int x = host_.AddTensor({1, 2}), times = host_.AddTensor({2}, DataType::kInt32);
  const int out = host_.AddTensor({});
  host_.AddNode("TILE", {x, times}, {out});
  host_.context.tensors[out].allocation_type = kTfLiteDynamic;
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  for (const Shape& given : {Shape{1, 2}, Shape{2, 1}, Shape{1, 2}, Shape{3, 1}}) {
    host_.Resize(x, given);
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    for (const int32_t rows : {1, 2, 1}) {
      for (int i = 0; i < given.elements(); ++i) host_.Floats(x)[i] = static_cast<float>(i + rows);
      auto* const values = static_cast<int32_t*>(host_.Memory(times));
      values[0] = rows;
      values[1] = 2;
      ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
      ASSERT_EQ(host_.ShapeOf(out), Shape({given[0] * rows, given[1] * 2}));
      for (int r = 0; r < given[0] * rows; ++r) {
        for (int c = 0; c < given[1] * 2; ++c) {
          const int from = r % given[0] * given[1] + c % given[1];
          EXPECT_EQ(host_.Floats(out)[r * given[1] * 2 + c], static_cast<float>(from + rows));
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::partitioner
