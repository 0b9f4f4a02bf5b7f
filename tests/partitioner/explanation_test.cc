#include "partitioner/report/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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
  EXPECT_THAT(text, HasSubstr("    jit: no emitter (step 0)\n"));
  EXPECT_THAT(text, HasSubstr("    fuse relu (nodes 0-1, 7)\n    drop identity (node 5)\n"));
}

TEST(ExplanationTest, TextSaysWhatLayInTheCache) {
  Explanation explanation = Example();
  EXPECT_THAT(ToText(explanation), Not(HasSubstr("cache")));
  EXPECT_THAT(ToText(explanation), Not(HasSubstr("depend on values")));
  explanation.graphs[0].partitions[0].report.caches = {{"/here.pack", 3, 1, ""},
                                                       {"/there.pack", 0, 2, "it was cut off"}};
  EXPECT_THAT(ToText(explanation),
              HasSubstr("  cache: 3 of 4 packed weights were in /here.pack\n"
                        "  cache: 0 of 2 packed weights were in /there.pack; it was cut off\n"));
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

// All that there is to say: two graphs, a partition that waits for the host's preparation, shapes
// that wait for values, steps with and without weights.
Explanation Whole() {
  Explanation explanation = Example();
  explanation.options.jit = false;
  explanation.graphs[0].verdicts[2].op = "ODD";
  PartitionReport& first = explanation.graphs[0].partitions[0];
  first.waiting_nodes = {1, 3};
  first.compile_ms = 1.25;
  first.report.arena_bytes = 2048;
  first.report.times = {.rewrites = 1, .placement = 2, .packing = 3, .kernels = 4, .memory = 5};
  fusion::StepReport& step = first.report.steps.emplace_back();
  step.kernel = "reshape";
  step.candidate = "copy";
  step.ops = "RESHAPE";
  step.tail = "relu";
  step.output_shape = "[1,2]";
  step.placement = "arena";
  step.host_nodes = {3};
  step.multiply_adds = 1000;
  step.weight_bytes = 4096;
  step.arena_offset = 64;
  step.output_bytes = 8;
  step.refusals = {{"jit", "no emitter"}, {"tiles", "too \"narrow\""}};
  GraphReport& second = explanation.graphs.emplace_back();
  second.error = "no plan";
  second.judge_ms = 0.5;
  Verdict& verdict = second.verdicts.emplace_back();
  verdict.host_node = 4;
  verdict.op = "TANH";
  verdict.shapes = "float32[2]";
  verdict.claimed = true;
  second.partitions.emplace_back().nodes = {4};
  return explanation;
}

TEST(ExplanationTest, TextSaysAllThatThereIs) {
  EXPECT_EQ(ToText(Whole()), R"(fuselite: isa avx2, jit off, fusion on
graph 0: 4 nodes, 3 taken, in 1 partition
  node  operator  output  verdict
     2  ODD               left to the host: the operator is not implemented
partition 0: 3 nodes (0-1 3), 2.50 M multiply-adds; 2 steps on 2 threads, weights 4.10 KB, intermediate values in 2.05 KB, compiled in 1.2 ms
  the shapes behind nodes 1 3 depend on values: what follows is compiled while the model runs, once for each shape
  step  nodes  operators       output  kernel    placed in  multiply-adds  weights
     0    0-1  CONV_2D + relu          conv f32                         0        -
     1      3  RESHAPE         [1,2]   reshape   arena             1.00 K  4.10 KB
  faster kernels that could not be used:
    jit: no emitter (steps 0-1)
    tiles: too "narrow" (step 1)
  rewrites:
    fuse relu (nodes 0-1, 7)
    drop identity (node 5)
graph 1: 1 node, 1 taken, in 1 partition
error: no plan
  node  operator  output      verdict
     4  TANH      float32[2]  taken
partition 0: 1 node (4), 0 multiply-adds, compiled when it first runs
)");
}

// Nothing is said of what there is not: no table of nodes, no refusals, no number of the graph.
TEST(ExplanationTest, TextOfOneGraphSaysNoMoreThanThereIs) {
  Explanation explanation = Example();
  explanation.options.fusion = false;
  GraphReport& graph = explanation.graphs[0];
  graph.verdicts.erase(graph.verdicts.begin() + 2);
  PartitionReport& partition = graph.partitions[0];
  partition.host_run_nodes = {3};
  partition.report.steps[0].refusals.clear();
  partition.report.rewrites = {{"fuse relu", {0, 1}}, {"drop identity", {3}}};
  EXPECT_EQ(ToText(explanation), R"(fuselite: isa avx2, jit on, fusion off
3 nodes, 3 taken, in 1 partition
partition 0: 3 nodes (0-1 3), 2.50 M multiply-adds; 1 step on 2 threads, weights 0 B, intermediate values in 0 B, compiled in 0.0 ms
  the host's kernel runs the subgraphs of node 3 inside the partition: the host does not say in which order they give their results
  step  nodes  operators       output  kernel    placed in  multiply-adds  weights
     0    0-1  CONV_2D + relu          conv f32                         0        -
  rewrites:
    fuse relu (nodes 0-1)
    drop identity (node 3)
)");
}

// One that the host has prepared, and one that it has not.
TEST(ExplanationTest, TextListsTheNodesOfPartitionsThatAreNotPrepared) {
  Explanation explanation = Example();
  explanation.graphs[0].partitions[0].nodes = {0, 1};
  explanation.graphs[0].partitions.emplace_back().nodes = {3};
  const std::string text = ToText(explanation);
  EXPECT_THAT(text, HasSubstr("     3  RESHAPE"));
  EXPECT_THAT(text, HasSubstr("taken\n"));
  EXPECT_THAT(text, Not(HasSubstr("  CONV_2D  ")));
}

// Places are said once, in their order, and runs of single ones as ranges.
TEST(ExplanationTest, TextSaysEachPlaceOnce) {
  Explanation explanation = Example();
  explanation.graphs[0].partitions[0].report.rewrites = {
      {"place", {9}}, {"place", {3, 4, 7}}, {"place", {8}}, {"place", {9}}, {"place", {3, 4, 7}}};
  EXPECT_THAT(ToText(explanation), HasSubstr("    place (nodes 3-4 7, 8-9)\n"));
}

// Also those that no step and no rewrite names.
TEST(ExplanationTest, EachNodeOfAPartitionStandsSomewhere) {
  Explanation explanation = Example();
  PartitionReport& partition = explanation.graphs[0].partitions[0];
  partition.nodes = {0, 1, 3, 4, 5, 6, 8, 9, 11};
  partition.waiting_nodes = {8};
  partition.later_nodes = {8, 9};
  partition.host_run_nodes = {11};
  EXPECT_EQ(NodesWithoutStep(partition), (std::vector<int>{3, 4, 6}));
  const std::string text = ToText(explanation);
  EXPECT_THAT(text, HasSubstr("  computed within other steps or not needed: nodes 3-4 6\n"));
  EXPECT_THAT(text, HasSubstr("  the shapes behind node 8 depend on values: nodes 8-9 are compiled "
                              "while the model runs, once for each shape\n"));
  const auto json = nlohmann::json::parse(ToJson(explanation)).at("graphs").at(0);
  EXPECT_EQ(json.at("partitions").at(0).at("nodes_without_step"), nlohmann::json({3, 4, 6}));
  EXPECT_EQ(json.at("partitions").at(0).at("later_nodes"), nlohmann::json({8, 9}));
}

TEST(ExplanationTest, SaysWhyAPartitionWasNotCompiled) {
  Explanation explanation = Example();
  PartitionReport& partition = explanation.graphs[0].partitions[0];
  partition.compiled = false;
  EXPECT_THAT(ToText(explanation), HasSubstr("multiply-adds, not yet compiled\n"));
  partition.error = "max_memory allows 1 B";
  EXPECT_THAT(ToText(explanation),
              HasSubstr("multiply-adds, could not be compiled: max_memory allows 1 B\n"));
  const auto json = nlohmann::json::parse(ToJson(explanation)).at("graphs").at(0);
  EXPECT_EQ(json.at("partitions").at(0).at("error"), "max_memory allows 1 B");
}

// One line where the host keeps a graph's nodes for one reason, as it does an initializer's.
TEST(ExplanationTest, AReasonOfAllNodesIsSaidOnce) {
  Explanation explanation = Example();
  GraphReport& graph = explanation.graphs[0];
  graph.partitions.clear();
  for (Verdict& verdict : graph.verdicts) {
    verdict.op = verdict.host_node == 0 ? "VAR_HANDLE" : "ASSIGN_VARIABLE";
    verdict.claimed = false;
    verdict.reason = "it runs once";
  }
  EXPECT_EQ(ToText(explanation), R"(fuselite: isa avx2, jit on, fusion on
4 nodes, 0 taken, in 0 partitions
  all 4 nodes (VAR_HANDLE, ASSIGN_VARIABLE) are left to the host: it runs once
)");
}

TEST(ExplanationTest, DotHasTextThatGraphvizTakes) {
  Explanation explanation = Example();
  explanation.graphs[0].verdicts[2].op = "a\\b\n\"c\"";
  EXPECT_THAT(ToDot(explanation), HasSubstr(R"(label="a\\b \"c\")"));
}

TEST(ExplanationTest, SaysInHowManyPartsABatchIsComputed) {
  Explanation explanation = Whole();
  explanation.graphs[0].partitions[0].report.batch_parts = 8;
  const std::string text = ToText(explanation);
  EXPECT_THAT(text, HasSubstr("intermediate values in 2.05 KB for each thread, compiled in"));
  EXPECT_THAT(text, HasSubstr("  a batch is computed in 8 parts, each of them by all steps"));
  const auto json = nlohmann::json::parse(ToJson(explanation));
  EXPECT_EQ(json.at("graphs").at(0).at("partitions").at(0).at("batch_parts"), 8);
}

TEST(ExplanationTest, DotDrawsAllThatThereIs) {
  EXPECT_EQ(ToDot(Whole()), R"(digraph fuselite {
  node [fontsize=10];
  subgraph cluster_g0p0 {
    label="partition 0";
    g0p0s0 [shape=box, label="CONV_2D + relu\nconv f32\n"];
    g0p0s1 [shape=box, label="RESHAPE\nreshape\n[1,2]"];
  }
  g0n2 [shape=ellipse, style=filled, label="ODD\nthe operator is not implemented"];
  g0p0s0 -> g0n2;
  g0p0s0 -> g0p0s1;
  subgraph cluster_g1p0 {
    label="partition 0";
  }
  g1n4 [shape=ellipse, style=dashed, label="TANH\nno step of its own"];
}
)");
}

TEST(ExplanationTest, JsonSaysAllThatThereIs) {
  const auto json = nlohmann::json::parse(ToJson(Whole()));
  EXPECT_EQ(json.at("jit"), false);
  EXPECT_EQ(json.at("graphs").at(1), nlohmann::json::parse(R"({
    "nodes": [{"node": 4, "op": "TANH", "outputs": "float32[2]", "claimed": true,
               "multiply_adds": 0}],
    "partitions": [{"nodes": [4], "multiply_adds": 0, "compiled": false}],
    "error": "no plan"})"));
  EXPECT_FALSE(json.at("graphs").at(0).contains("error"));
  const auto& partition = json.at("graphs").at(0).at("partitions").at(0);
  EXPECT_EQ(partition.at("waiting_nodes"), nlohmann::json::parse("[1,3]"));
  EXPECT_EQ(partition.at("rewrites").size(), 3u);
  EXPECT_EQ(partition.at("opening_ms"), nlohmann::json::parse(R"({
    "rewrites": 1, "placement": 2, "packing": 3, "kernels": 4, "memory": 5})"));
  EXPECT_EQ(partition.at("steps").at(1), nlohmann::json::parse(R"({
    "kernel": "reshape", "candidate": "copy", "ops": "RESHAPE", "tail": "relu", "nodes": [3],
    "output_shape": "[1,2]", "placement": "arena", "multiply_adds": 1000, "weight_bytes": 4096,
    "arena_offset": 64, "output_bytes": 8,
    "refusals": [{"candidate": "jit", "reason": "no emitter"},
                 {"candidate": "tiles", "reason": "too \"narrow\""}]})"));
}

TEST(ExplanationTest, OpeningTimesAddUp) {
  Explanation explanation = Whole();
  explanation.graphs[0].judge_ms = 0.25;
  explanation.graphs[0].partitions[0].compile_ms = 16;
  std::ostringstream out;
  OpeningTimes(explanation).Print(out, 0);
  EXPECT_EQ(out.str(), R"(opening                         ms
import, verdicts, partitions  0.75
rewrites                      1.00
placement                     2.00
packing of weights            3.00
emission of code              4.00
memory plan                   5.00
other                         1.00
)");
}

TEST(ExplanationTest, TheEndingOfANameChoosesTheForm) {
  const std::pair<const char*, std::string (*)(const Explanation&)> forms[] = {
      {"explained.json", ToJson}, {"explained.dot", ToDot}, {"explained.txt", ToText}};
  for (const auto& [name, form] : forms) {
    const std::string path = ::testing::TempDir() + name;
    ASSERT_TRUE(WriteExplanation(Example(), path).ok());
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::filesystem::remove(path);
    EXPECT_EQ(text.str(), form(Example())) << name;
  }
}

TEST(ExplanationTest, AFileThatCannotBeWrittenIsAnError) {
  const Status status = WriteExplanation(Example(), "/nowhere/at/all.json");
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/at/all.json"));
}

}  // namespace
}  // namespace fuselite::partitioner
