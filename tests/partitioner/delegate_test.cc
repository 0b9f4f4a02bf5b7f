// Which nodes of a graph the delegate takes, and what it says of the others.
#include "partitioner/delegate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/generate/generate.h"
#include "kernels/softmax/softmax.h"
#include "kernels/split/split.h"
#include "runtime/cpu/cpu.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace testing;
using namespace tflite;

TEST_F(DelegateTest, AWholeGraphIsTakenHoweverSmall) {
  const int in = host_.AddTensor({1, 2});
  const int out = host_.AddTensor({1, 2});
  const kernels::Params params(kernels::SoftmaxParams{.beta = 1});
  host_.AddNode("SOFTMAX", {in}, {out}, &params);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_THAT(host_.kernels, ElementsAre(ElementsAre(0)));
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  host_.Floats(in)[0] = 0;
  host_.Floats(in)[1] = std::log(3.0f);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  EXPECT_NEAR(host_.Floats(out)[0], 0.25f, 1e-6);
  EXPECT_NEAR(host_.Floats(out)[1], 0.75f, 1e-6);
}

TEST_F(DelegateTest, UnknownOperatorsSplitTheGraph) {
  const int out = Layers(Custom(Layers(input_, 4)), 5);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4), SizeIs(5)));
  EXPECT_EQ(Reasons()[4], "the operator is not implemented");
  EXPECT_EQ(delegate_->Explain().graphs[0].verdicts[4].op, "custom operator Foo");
}

TEST_F(DelegateTest, PartitionsWithTooLittleWorkAreTheHosts) {
  const int small_in = Layers(input_, 4), custom = Custom(small_in);
  const int out = host_.AddTensor({1, kWidth});
  host_.AddNode("SOFTMAX", {custom}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4)));
  EXPECT_THAT(Reasons()[5], HasSubstr("too little work"));
}

TEST_F(DelegateTest, VerdictsDescribeAllOutputs) {
  const int axis = host_.AddConstant({}, std::vector<int32_t>{1});
  const int a = host_.AddTensor({1, kWidth / 2}), b = host_.AddTensor({1, kWidth / 2});
  const kernels::Params two(kernels::SplitParams{.num_splits = 2});
  host_.AddNode("SPLIT", {axis, input_}, {a, b}, &two);
  host_.SetOutputs({a, b});
  Apply(DefaultOptions());
  EXPECT_EQ(delegate_->Explain().graphs[0].verdicts[0].shapes, "float32[1,32], float32[1,32]");
}

TEST_F(DelegateTest, OutputsAreOfATypeThatIsKnown) {
  const int out = Layer(input_);
  host_.context.tensors[out].type = kTfLiteNoType;
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("is of unknown type 0")));
}

TEST_F(DelegateTest, OptionsLimitPartitions) {
  const int out = Layers(Custom(Layers(Custom(Layers(input_, 4)), 6)), 5);
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.max_partitions = 2;
  Apply(options);
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(6), SizeIs(5)));
  EXPECT_THAT(Reasons()[0], HasSubstr("max_partitions is 2"));
  options = DefaultOptions();
  options.min_nodes_per_partition = 6;
  Apply(options);
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(6)));
  EXPECT_THAT(Reasons()[0], HasSubstr("min_nodes_per_partition (6)"));
}

TEST_F(DelegateTest, DeniedOperatorsAreTheHosts) {
  const int middle = Layers(input_, 4);
  const int out = host_.AddTensor({1, kWidth});
  host_.AddNode("SOFTMAX", {middle}, {out});
  host_.SetOutputs({out});
  Options options = DefaultOptions();
  options.ops_deny = {"SOFTMAX"};
  Apply(options);
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4)));
  EXPECT_EQ(Reasons()[4], "the option ops_deny names this operator");
}

TEST_F(DelegateTest, RegistrationsMayCarryTheOpaqueFormOnly) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  int opaque = 0;
  for (TfLiteRegistration& registration : host_.registrations) {
    registration.registration_external = reinterpret_cast<TfLiteOperator*>(&opaque);
  }
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, SizeIs(1));
}

TEST_F(DelegateTest, NodesOfOtherDelegatesStayTheirs) {
  const int out = Layers(input_, 2);
  host_.SetOutputs({out});
  TfLiteDelegate other{};
  host_.nodes[0].delegate = &other;
  Options options = DefaultOptions();
  Apply(options);
  EXPECT_EQ(Reasons()[0], "another delegate has taken it");
}

// Hosts that share delegates between graphs may apply one again: what it said of the graph stays.
TEST_F(DelegateTest, WhatTheDelegateHasTakenItselfStaysAsItWas) {
  host_.SetOutputs({Layers(input_, 4)});
  Apply(DefaultOptions());
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  const std::string before = ToText(delegate_->Explain());
  host_.nodes[0].delegate = delegate_->c_struct();
  const size_t kernels = host_.kernels.size();
  ASSERT_EQ(delegate_->c_struct()->Prepare(&host_.context, delegate_->c_struct()), kTfLiteOk);
  EXPECT_EQ(host_.kernels.size(), kernels);
  EXPECT_EQ(ToText(delegate_->Explain()), before);
  EXPECT_THAT(before, HasSubstr("4 nodes, 4 taken, in 1 partition"));
}

TEST_F(DelegateTest, NewerVersionsAndStrangeTypesAreTheHostsWithTheReason) {
  const int out = Layers(input_, 2);
  host_.SetOutputs({out});
  host_.registrations[0].version = 99;
  host_.context.tensors[out].type = kTfLiteFloat64;
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(Reasons()[0], HasSubstr("version 99"));
  EXPECT_THAT(Reasons()[1], HasSubstr("float64"));
}

TEST_F(DelegateTest, GraphsThatWriteATensorTwiceAreTheHosts) {
  const int out = Layer(Layer(input_));
  const int twice = host_.AddTensor({1, kWidth});
  host_.AddNode("EXP", {input_}, {twice});
  host_.AddNode("NEG", {out}, {twice});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(Reasons(), Each(HasSubstr("nodes 2 and 3 both write tensor")));
}

TEST_F(DelegateTest, GraphsThatWriteOverConstantsAreTheHosts) {
  const int out = Layer(input_);
  host_.AddNode("EXP", {input_}, {host_.AddConstant({1, kWidth}, Ramp(kWidth))});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(Reasons(), Each(HasSubstr("node 1 writes over tensor")));
}

// Where the batch is open, what does not fit may fit later; a missing scale will not.
TEST_F(DelegateTest, OpenShapesExcuseNoScales) {
  const int x = host_.AddTensor({1, kWidth}, DataType::kInt8);
  const int out = host_.AddTensor({1, kWidth}, DataType::kInt8);
  const IntArrayPtr open = MakeIntArray(std::vector{-1, kWidth});
  host_.context.tensors[x].dims_signature = open.get();
  host_.AddNode("MUL", {x, x}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  host_.context.tensors[x].dims_signature = nullptr;
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("scale")));
}

// A shape of which the host computes a part is a value of the run.
TEST_F(DelegateTest, ShapesThatPassThroughTheHostAreNotKnown) {
  const int in = host_.AddTensor({1, 4}), shape = host_.AddTensor({2}, DataType::kInt32);
  const int changed = host_.AddTensor({2}, DataType::kInt32), out = host_.AddTensor({1, 4});
  const kernels::Params as_int(kernels::ShapeParams{.out_type = DataType::kInt32});
  host_.AddNode("SHAPE", {in}, {shape}, &as_int);
  host_.AddCustomNode("Foo", {shape}, {changed});
  host_.AddNode("RESHAPE", {in, changed}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(Reasons()[2], HasSubstr("too little work"));
}

TEST_F(DelegateTest, FaultsOfTheHostLeaveTheGraphToIt) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  host_.fail_plan = true;
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(delegate_->Explain().graphs[0].error, HasSubstr("execution plan"));
  host_.fail_plan = false;
  host_.fail_preview = true;
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(Reasons()[0], HasSubstr("preview"));
}

TEST_F(DelegateTest, ThreadsComeFromTheOptionThenTheHostThenTheMachine) {
  Options options = DefaultOptions();
  host_.context.recommended_num_threads = 100000;
  EXPECT_EQ(DelegateState(options).ThreadsFor(&host_.context), kMaxThreads);
  host_.context.recommended_num_threads = 3;
  EXPECT_EQ(DelegateState(options).ThreadsFor(&host_.context), 3);
  options.num_threads = 5;
  EXPECT_EQ(DelegateState(options).ThreadsFor(&host_.context), 5);
  options.num_threads = 0;
  host_.context.recommended_num_threads = -1;
  EXPECT_EQ(DelegateState(options).ThreadsFor(&host_.context), ReadCpuInfo().physical_cores);
}

}  // namespace
}  // namespace fuselite::partitioner
