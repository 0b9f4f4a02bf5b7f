// Vectors find a kept box that covers another exactly where a plain loop does.
#include "kernels/detection/kept_boxes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {
namespace {

// Boxes of a small grid, so that many are alike, lie in each other, or have no area.
Box RandomBox(Random& random) {
  const auto at = [&] { return static_cast<float>(random.Int(0, 6)) / 8; };
  const auto size = [&] { return static_cast<float>(random.Int(0, 5)) / 7; };
  const float top = at(), left = at();
  return {top, left, top + size(), left + size()};
}

// Inside of exact memory, for sanitizers.
class Kept {
 public:
  Kept(Random& random, int32_t count)
      : values_(KeptBoxes::values(count)), boxes_(values_.data(), count) {
    for (int32_t i = 0; i < count; ++i) boxes_.Add(RandomBox(random));
  }
  const KeptBoxes& operator*() const { return boxes_; }

 private:
  std::vector<float> values_;
  KeptBoxes boxes_;
};

TEST(KeptBoxesTest, VectorsCoverWhatLoopsDo) {
  for (const Isa isa : RunnableIsas()) {
    CoversFunction* const covers = FindCovers(isa);
    if (covers == nullptr) continue;
    int covered = 0;
    for (uint64_t seed = 1; seed <= 2000; ++seed) {
      Random random(seed);
      const Kept kept(random, static_cast<int32_t>(random.Int(0, 20)));
      const Box box = RandomBox(random);
      const float threshold = random.Pick({-1.0f, 0.0f, 0.25f, 0.5f, 0.6f, 1.0f});
      const bool expected = PlainCovers(*kept, box, threshold);
      ASSERT_EQ(covers(*kept, box, threshold), expected) << IsaName(isa) << ' ' << random.Trace();
      covered += expected ? 1 : 0;
    }
    EXPECT_GT(covered, 300);
    EXPECT_LT(covered, 1700);
  }
}

TEST(KeptBoxesTest, HalfOfTheUnion) {
  std::vector<float> values(KeptBoxes::values(2));
  KeptBoxes kept(values.data(), 2);
  const Box box = {0, 0, 1, 2};
  EXPECT_FALSE(PlainCovers(kept, box, 0));
  kept.Add({0, 0, 1, 1});
  EXPECT_TRUE(PlainCovers(kept, box, 0.49f));
  EXPECT_FALSE(PlainCovers(kept, box, 0.5f));
  kept.Add(box);
  EXPECT_TRUE(PlainCovers(kept, box, 0.99f));
  EXPECT_EQ(kept.count(), 2);
}

}  // namespace
}  // namespace fuselite::kernels::testing
