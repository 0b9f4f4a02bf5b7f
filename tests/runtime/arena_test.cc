#include "runtime/memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace fuselite {
namespace {

void ExpectValid(const std::vector<ArenaValue>& values, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % values[i].alignment, 0u);
    EXPECT_LE(plan.offsets[i] + values[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const ArenaValue &a = values[i], &b = values[j];
      if (a.bytes == 0 || b.bytes == 0) continue;
      if (a.first_step > b.last_step || b.first_step > a.last_step) continue;
      EXPECT_TRUE(plan.offsets[i] + a.bytes <= plan.offsets[j] ||
                  plan.offsets[j] + b.bytes <= plan.offsets[i])
          << i << " and " << j << " overlap";
    }
  }
}

TEST(Arena, NothingNeedsNothing) {
  EXPECT_EQ(PlanArena({}).bytes, 0u);
  const std::vector<ArenaValue> empty = {{0, 0, 5}, {0, 1, 1}};
  EXPECT_EQ(PlanArena(empty).bytes, 0u);
  EXPECT_EQ(ArenaLowerBound({}), 0u);
}

TEST(Arena, AChainNeedsItsTwoLargestNeighbours) {
  // Each value is made by step i and read by step i + 1.
  const std::vector<ArenaValue> values = {
      {640, 0, 1}, {1280, 1, 2}, {256, 2, 3}, {1920, 3, 4}, {64, 4, 5}};
  const ArenaPlan plan = PlanArena(values);
  ExpectValid(values, plan);
  EXPECT_EQ(ArenaLowerBound(values), 2176u);
  EXPECT_EQ(plan.bytes, 2176u);
}

TEST(Arena, AGapIsReusedBySmallerValues) {
  const std::vector<ArenaValue> values = {{4096, 0, 1}, {64, 0, 9}, {1024, 3, 4}, {1024, 3, 5}};
  const ArenaPlan plan = PlanArena(values);
  ExpectValid(values, plan);
  EXPECT_EQ(plan.bytes, 4160u);
}

TEST(Arena, HonoursAlignment) {
  const std::vector<ArenaValue> values = {{100, 0, 1, 64}, {100, 0, 1, 4096}, {3, 0, 1, 1}};
  ExpectValid(values, PlanArena(values));
  EXPECT_EQ(PlanArena(std::vector<ArenaValue>{{100, 0, 1}, {0, 0, 1, 4096}}).bytes, 100u);
}

// As it is placed in the order of its steps, whatever the order of its values is.
TEST(Arena, AChainInAnotherOrderNeedsNoMore) {
  std::mt19937 random(20261127);
  for (int chain = 0; chain < 50; ++chain) {
    std::vector<ArenaValue> values;
    for (int i = 0; i < 12; ++i) values.push_back({64 * (1 + random() % 40) + i, i, i + 1});
    const size_t bytes = PlanArena(values).bytes;
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(PlanArena(values).bytes, bytes) << chain;
  }
}

// Inverted residual blocks at 56x56x24, float: expansion, depthwise, projection, residual.
TEST(Arena, ResidualBlocksAreNearTheLowerBound) {
  std::vector<ArenaValue> values;
  const size_t narrow = 56 * 56 * 24 * 4, wide = narrow * 6;
  for (int block = 0; block < 8; ++block) {
    const int step = 3 * block;
    values.push_back({narrow, step, step + 3});  // the block's input, added at its end
    values.push_back({wide, step + 1, step + 2});
    values.push_back({wide, step + 2, step + 3});
  }
  const ArenaPlan plan = PlanArena(values);
  ExpectValid(values, plan);
  // Greedy placement costs one narrow value here; 13 of them are the bound.
  EXPECT_LE(plan.bytes, ArenaLowerBound(values) * 14 / 13 + 64);
}

TEST(Arena, RandomLifetimes) {
  size_t all = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<ArenaValue> values(1 + random() % 60);
    size_t sum = 0;
    for (ArenaValue& value : values) {
      value.bytes = random() % 5 == 0 ? random() % 100 : 64 * (random() % 5000);
      value.first_step = static_cast<int>(random() % 50);
      value.last_step = value.first_step + static_cast<int>(random() % (random() % 4 ? 4 : 50));
      value.alignment = size_t{1} << random() % 8;
      sum += AlignUp(value.bytes, 128);
    }
    const ArenaPlan plan = PlanArena(values);
    ExpectValid(values, plan);
    EXPECT_LE(plan.bytes, sum);
    EXPECT_GE(plan.bytes, ArenaLowerBound(values));
    // No guarantee exists below a small factor; greedy plans of random lifetimes stay close.
    EXPECT_LE(plan.bytes, ArenaLowerBound(values) * 3 / 2 + 4096);
    all += plan.bytes;
  }
  // Each of the three orders is the best of some: without one it is 348 million and more.
  EXPECT_LE(all, 345'000'000u);
}

}  // namespace
}  // namespace fuselite
