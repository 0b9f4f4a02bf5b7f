#include "interpreter/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace fuselite::interpreter {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct TestNode {
  std::vector<int> inputs, outputs;
  bool claimed = false;
  bool side_effect = false;
};

std::vector<NodeSubset> Partition(const std::vector<TestNode>& nodes, std::vector<int> outputs,
                                  int tensors = 32, bool cluster = true) {
  std::vector<PlanNode> plan;
  for (size_t i = 0; i < nodes.size(); ++i) {
    plan.push_back({static_cast<int>(i), nodes[i].inputs, nodes[i].outputs, nodes[i].claimed,
                    nodes[i].side_effect});
  }
  return PartitionPlan(plan, tensors, outputs, cluster);
}

TEST(PartitionTest, NothingGivesNothing) { EXPECT_THAT(Partition({}, {}), IsEmpty()); }

TEST(PartitionTest, ChainOfOneKindIsOneSubset) {
  const auto subsets = Partition({{{0, 9}, {1}, true}, {{1, -1}, {2}, true}}, {2});
  ASSERT_EQ(subsets.size(), 1u);
  EXPECT_TRUE(subsets[0].claimed);
  EXPECT_THAT(subsets[0].nodes, ElementsAre(0, 1));
  EXPECT_THAT(subsets[0].inputs, ElementsAre(0, 9));
  EXPECT_THAT(subsets[0].outputs, ElementsAre(2));
}

TEST(PartitionTest, AlternatingChainAlternates) {
  const auto subsets = Partition({{{0}, {1}, true}, {{1}, {2}, false}, {{2}, {3}, true}}, {3});
  ASSERT_EQ(subsets.size(), 3u);
  EXPECT_THAT(subsets[0].outputs, ElementsAre(1));
  EXPECT_THAT(subsets[1].inputs, ElementsAre(1));
  EXPECT_THAT(subsets[2].nodes, ElementsAre(2));
}

// A claimed branch beside an unclaimed one is taken whole before the other runs.
TEST(PartitionTest, BranchesAreClustered) {
  const std::vector<TestNode> nodes = {{{0}, {1}, true},
                                       {{0}, {2}, false},
                                       {{1}, {3}, true},
                                       {{2}, {4}, false},
                                       {{3, 4}, {5}, true}};
  const auto subsets = Partition(nodes, {5});
  ASSERT_EQ(subsets.size(), 3u);
  EXPECT_THAT(subsets[0].nodes, ElementsAre(0, 2));
  EXPECT_THAT(subsets[0].outputs, ElementsAre(3));
  EXPECT_THAT(subsets[1].nodes, ElementsAre(1, 3));
  EXPECT_THAT(subsets[2].nodes, ElementsAre(4));
  EXPECT_THAT(subsets[2].inputs, ElementsAre(3, 4));
  EXPECT_EQ(Partition(nodes, {5}, 32, /*cluster=*/false).size(), 5u);
}

TEST(PartitionTest, WhatTheCallerReadsIsAnOutput) {
  const auto subsets = Partition({{{0}, {1}, true}, {{1}, {2}, true}}, {1, 2, 0});
  ASSERT_EQ(subsets.size(), 1u);
  EXPECT_THAT(subsets[0].outputs, ElementsAre(1, 2));
}

TEST(PartitionTest, SideEffectsKeepTheirOrder) {
  // The unclaimed node 0 runs first; 1 (claimed) must come before 2, though 2 could join 0.
  const auto subsets = Partition(
      {{{0}, {1}, false, true}, {{0}, {2}, true, true}, {{0}, {3}, false, true}}, {1, 2, 3});
  ASSERT_EQ(subsets.size(), 3u);
  EXPECT_THAT(subsets[1].nodes, ElementsAre(1));
}

// Random graphs have every node once, order kept, each subset's inputs and outputs exactly what
// crosses it.
TEST(PartitionTest, RandomGraphsAreSplitSoundly) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const int count = 1 + static_cast<int>(random() % 20);
    std::vector<TestNode> nodes(count);
    for (int i = 0; i < count; ++i) {  // node i writes tensor 100 + i
      for (int k = static_cast<int>(random() % 3); k >= 0; --k) {
        const bool given = i == 0 || random() % 4 == 0;
        nodes[i].inputs.push_back(given ? static_cast<int>(random() % 5)
                                        : 100 + static_cast<int>(random() % i));
      }
      nodes[i].outputs = {100 + i};
      nodes[i].claimed = random() % 2;
    }
    const std::vector<int> graph_outputs = {100 + count - 1, 100 + count / 2};
    const bool cluster = random() % 2;
    const auto subsets = Partition(nodes, graph_outputs, 200, cluster);
    std::set<int> ready = {0, 1, 2, 3, 4};
    std::set<int> seen;
    for (const NodeSubset& subset : subsets) {
      std::set<int> written;
      std::set<int> crossing;
      for (int index : subset.nodes) {
        ASSERT_TRUE(seen.insert(index).second);
        ASSERT_EQ(nodes[index].claimed, subset.claimed);
        for (int input : nodes[index].inputs) {
          ASSERT_TRUE(ready.count(input) || written.count(input));
          if (!written.count(input)) crossing.insert(input);
        }
        written.insert(100 + index);
      }
      ASSERT_THAT(subset.inputs, testing::ElementsAreArray(crossing));
      ready.insert(written.begin(), written.end());
      std::set<int> read;
      for (int i = 0; i < count; ++i) {
        const bool inside = std::ranges::count(subset.nodes, i) > 0;
        for (int input : nodes[i].inputs) {
          if (!inside && written.count(input)) read.insert(input);
        }
      }
      for (int output : graph_outputs) {
        if (written.count(output)) read.insert(output);
      }
      ASSERT_THAT(subset.outputs, testing::ElementsAreArray(read));
    }
    ASSERT_EQ(static_cast<int>(seen.size()), count);
  }
}

}  // namespace
}  // namespace fuselite::interpreter
