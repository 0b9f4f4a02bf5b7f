// Hosts and files that show less than there should be, or what is wrong: the rest is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/generate/generate.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace testing;
using namespace tflite;

class HostsTest : public DelegateTest {
 protected:
  // Four layers, the host's node, five layers: node 4 is in between.
  void SetUp() override { host_.SetOutputs({Layers(Custom(Layers(input_, 4)), 5)}); }
  std::string Reason(int node) { return Reasons().at(node); }
};

TEST_F(HostsTest, NodesThatAreNotShownAreTheHosts) {
  using Shows = FakeHost::Shows;
  for (const Shows shows : {Shows::kError, Shows::kNoNode, Shows::kNoRegistration}) {
    host_.shows = {{4, shows}};
    Apply(DefaultOptions());
    EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4), SizeIs(5)));
    EXPECT_EQ(Reason(4), "the host does not show the node");
  }
}

TEST_F(HostsTest, NodesThatNameNoTensorsAreTheHosts) {
  const int beyond = static_cast<int>(host_.context.tensors_size) + 100;
  struct Case {
    std::vector<int> inputs, outputs;
    const char* reason;
  };
  for (const Case& c : {Case{{beyond}, {input_}, "names a tensor that the graph does not have"},
                        Case{{input_}, {beyond}, "names a tensor that the graph does not have"},
                        Case{{input_}, {-1}, "has an output left out"},
                        Case{{-1}, {host_.AddTensor({1})}, "input 0 is left out"}}) {
    SCOPED_TRACE(c.reason);
    const int node = host_.AddNode("ABS", c.inputs, c.outputs);
    Apply(DefaultOptions());
    EXPECT_THAT(Reason(node), HasSubstr(c.reason));
    EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4), SizeIs(5)));
    host_.nodes.pop_back();
    host_.registrations.pop_back();
  }
}

TEST_F(HostsTest, CustomOperatorsAreKnownByTheirNames) {
  const int out = host_.AddTensor({1, kWidth});
  const int nameless = host_.AddCustomNode(nullptr, {input_}, {out});
  const int ours = host_.AddCustomNode("TFLite_Detection_PostProcess", {input_}, {out});
  // A builtin operator may have a name, too, that says nothing.
  host_.registrations[0].custom_name = "TFLite_Detection_PostProcess";
  const char options = 0;
  Apply(DefaultOptions());
  EXPECT_EQ(delegate_->Explain().graphs[0].verdicts[nameless].op, "custom operator without a name");
  EXPECT_THAT(Reason(nameless), HasSubstr("both write"));
  host_.nodes[nameless].outputs->size = 0;
  Apply(DefaultOptions());
  EXPECT_EQ(Reason(nameless), "the operator is not implemented");
  EXPECT_EQ(Reason(0), "");
  EXPECT_THAT(Reason(ours), HasSubstr("has no options"));
  host_.nodes[ours].custom_initial_data = &options;
  host_.nodes[ours].custom_initial_data_size = -1;
  Apply(DefaultOptions());
  EXPECT_THAT(Reason(ours), HasSubstr("has no options"));
  Options denied = DefaultOptions();
  denied.ops_deny = {"TFLite_Detection_PostProcess"};
  Apply(denied);
  EXPECT_EQ(Reason(ours), "the option ops_deny names this operator");
  EXPECT_EQ(Reason(0), "");
}

TEST_F(HostsTest, TensorsAreCalledByTheirNumbersAndNames) {
  const std::pair<const char*, const char*> cases[] = {
      {"x", "both write tensor "}, {nullptr, "both write tensor "}, {"", "both write tensor "}};
  const int out = host_.AddTensor({1, kWidth});
  host_.AddNode("ABS", {input_}, {out});
  host_.AddNode("EXP", {input_}, {out});
  for (const auto& [name, said] : cases) {
    host_.context.tensors[out].name = name;
    Apply(DefaultOptions());
    const bool named = name != nullptr && *name != '\0';
    const std::string expected =
        said + std::to_string(out) + (named ? " '" + std::string(name) + "'" : "");
    EXPECT_THAT(Reasons(), Each(::testing::EndsWith(expected)));
  }
}

// Without a word of how it would join nodes, the host gets all results of constants.
TEST_F(HostsTest, WithoutAPreviewNothingIsTaken) {
  host_.AddNode("NEG", {host_.AddConstant({1, kWidth}, Ramp(kWidth))},
                {host_.AddTensor({1, kWidth})});
  Custom(input_);
  host_.fail_preview = true;
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  // What would not have been taken anyway keeps its own reason.
  EXPECT_THAT(Reasons(), Contains(HasSubstr("not implemented")));
  EXPECT_THAT(delegate_->Explain().graphs[0].error, HasSubstr("preview"));
}

TEST_F(HostsTest, WhatTheHostDoesNotReplaceIsAnError) {
  host_.fail_replace = true;
  delegate_ = std::make_unique<Delegate>(DefaultOptions());
  EXPECT_EQ(host_.Apply(delegate_->c_struct()), kTfLiteError);
  EXPECT_THAT(host_.errors, Contains(HasSubstr("does not replace the nodes")));
}

TEST_F(HostsTest, GraphsWithNothingToTakeAreLeftAlone) {
  FakeHost host;
  const int x = host.AddTensor({1, kWidth}), y = host.AddTensor({1, kWidth});
  host.AddCustomNode("Foo", {x}, {y});
  host.SetOutputs({y});
  host.fail_replace = true;  // nobody asks for it
  Delegate delegate(DefaultOptions());
  EXPECT_EQ(host.Apply(delegate.c_struct()), kTfLiteOk);
  EXPECT_THAT(host.errors, IsEmpty());
  EXPECT_THAT(delegate.Explain().graphs[0].partitions, IsEmpty());
}

// As many partitions that cost the same are taken as may be, the first ones.
TEST(LimitTest, EqualPartitionsAreTakenInTheirOrder) {
  constexpr int kWidth = 64;
  for (int limit = 0; limit <= 4; ++limit) {
    FakeHost host;
    int x = host.AddTensor({1, kWidth});
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < 8 + (part == 1 ? 1 : 0); ++i) {
        const int y = host.AddTensor({1, kWidth});
        host.AddNode("ABS", {x}, {y});
        x = y;
      }
      const int z = host.AddTensor({1, kWidth});
      host.AddCustomNode("Foo", {x}, {z});
      x = z;
    }
    host.SetOutputs({x});
    Options options = DefaultOptions();
    options.max_partitions = limit;
    Delegate delegate(options);
    ASSERT_EQ(host.Apply(delegate.c_struct()), kTfLiteOk);
    std::vector<size_t> first;
    for (const std::vector<int>& kernel : host.kernels) first.push_back(kernel.front());
    const std::vector<size_t> all = {0, 9, 19};
    const std::vector<std::vector<size_t>> expected = {all, {9}, {0, 9}, all, all};
    EXPECT_EQ(first, expected[limit]) << limit;
  }
}

}  // namespace
}  // namespace fuselite::partitioner
