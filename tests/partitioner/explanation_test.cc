#include "partitioner/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fuselite::partitioner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Nodes 0 and 1 in one step, 2 the host's, 3 without a step of its own.
Explanation Example() {
  Explanation explanation;
  explanation.options.isa = Isa::kAvx2;
  GraphReport& graph = explanation.graphs.emplace_back();
  const auto add = [&](int node, const char* op, std::vector<int> in, std::vector<int> out) {
    Verdict& verdict = graph.verdicts.emplace_back();
    verdict.host_node = node;
    verdict.op = op;
    verdict.inputs = std::move(in);
    verdict.outputs = std::move(out);
    verdict.claimed = true;
  };
  add(0, "CONV_2D", {0, 1}, {2});
  add(1, "RELU", {2}, {3});
  add(2, "custom operator \"Odd\xff\"", {3}, {4});
  add(3, "RESHAPE", {3}, {5});
  graph.verdicts[2].claimed = false;
  graph.verdicts[2].reason = "the operator is not implemented";
  PartitionReport& partition = graph.partitions.emplace_back();
  partition.nodes = {0, 1, 3};
  partition.cost = 2.5e6;
  partition.compiled = true;
  partition.threads = 2;
  fusion::StepReport& step = partition.report.steps.emplace_back();
  step.kernel = "conv f32";
  step.ops = "CONV_2D + relu";
  step.host_nodes = {0, 1};
  step.refusals = {{"jit", "no emitter"}};
  partition.report.rewrites = {{"fuse relu", {0, 1}}, {"drop identity", {5}}, {"fuse relu", {7}}};
  return explanation;
}

TEST(ExplanationTest, TextSaysWhatBecameOfEachNode) {
  const std::string text = ToText(Example());
  EXPECT_THAT(text, HasSubstr("isa avx2"));
  EXPECT_THAT(text, HasSubstr("4 nodes, 3 taken, in 1 partition\n"));
  EXPECT_THAT(text, HasSubstr("left to the host: the operator is not implemented"));
  EXPECT_THAT(text,
              HasSubstr("partition 0: 3 nodes (0-1 3), 2.50 M multiply-adds; 1 step on 2 thr"));
  EXPECT_THAT(text, HasSubstr("    not jit: no emitter (step 0)\n"));
  EXPECT_THAT(text, HasSubstr("    fuse relu (nodes 0-1, 7)\n    drop identity (node 5)\n"));
}

TEST(ExplanationTest, TextListsNodesThatNoStepShows) {
  Explanation explanation = Example();
  EXPECT_THAT(ToText(explanation), Not(HasSubstr("0  CONV_2D")));
  explanation.graphs[0].partitions[0].compiled = false;
  EXPECT_THAT(ToText(explanation), HasSubstr("0  CONV_2D"));
}

TEST(ExplanationTest, JsonCanBeReadBack) {
  const nlohmann::json json = nlohmann::json::parse(ToJson(Example()));
  const auto& graph = json.at("graphs").at(0);
  EXPECT_EQ(graph.at("nodes").size(), 4u);
  EXPECT_EQ(graph.at("nodes").at(2).at("claimed"), false);
  EXPECT_EQ(graph.at("nodes").at(2).at("reason"), "the operator is not implemented");
  EXPECT_FALSE(graph.at("nodes").at(0).contains("reason"));
  const auto& partition = graph.at("partitions").at(0);
  EXPECT_EQ(partition.at("nodes"), nlohmann::json::parse("[0,1,3]"));
  EXPECT_EQ(partition.at("steps").at(0).at("refusals").at(0).at("candidate"), "jit");
}

TEST(ExplanationTest, DotHasStepsHostNodesAndTheirEdges) {
  const std::string dot = ToDot(Example());
  EXPECT_THAT(dot, HasSubstr("digraph"));
  EXPECT_THAT(dot, HasSubstr("g0p0s0 -> g0n2;"));
  EXPECT_THAT(dot, HasSubstr("g0p0s0 -> g0n3;"));
  EXPECT_THAT(dot, Not(HasSubstr("g0p0s0 -> g0p0s0")));
  EXPECT_THAT(dot, HasSubstr("\\\"Odd"));
}

TEST(ExplanationTest, AFileThatCannotBeWrittenIsAnError) {
  const Status status = WriteExplanation(Example(), "/nowhere/at/all.json");
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/at/all.json"));
}

}  // namespace
}  // namespace fuselite::partitioner
