#include "runtime/support/short_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace fuselite {
namespace {

using ::testing::ElementsAreArray;

TEST(ShortList, IsWhatAVectorIs) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
    ShortList<int, 3> list;
    std::vector<int> expected;
    for (int i = 0; i < 200; ++i) {
      const int at = below(expected.size() + 1);
      if (below(2) == 0) {
        list.insert(list.begin() + at, i);
        expected.insert(expected.begin() + at, i);
      } else {
        const int to = at + below(expected.size() + 1 - static_cast<size_t>(at));
        list.erase(list.begin() + at, list.begin() + to);
        expected.erase(expected.begin() + at, expected.begin() + to);
      }
      const ShortList<int, 3> copy = list;
      ASSERT_THAT(std::vector<int>(copy.begin(), copy.end()), ElementsAreArray(expected));
      ASSERT_EQ(list.size(), expected.size());
      ASSERT_EQ(list.empty(), expected.empty());
    }
  }
}

TEST(ShortList, EndsGrowAndShrink) {
  ShortList<int, 2> list;
  for (int i = 0; i < 5; ++i) {
    list.push_back(i);
    EXPECT_EQ(list.back(), i);
  }
  for (int i = 4; i > 0; --i) {
    list.pop_back();
    EXPECT_EQ(list.back(), i - 1);
  }
  list.clear();
  EXPECT_TRUE(list.empty());
  list.push_back(7);
  EXPECT_EQ(list[0], 7);
}

}  // namespace
}  // namespace fuselite
