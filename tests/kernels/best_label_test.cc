// The label with a box's best score: vectors against plain loops.
#include "kernels/detection/best_label.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

template <class T, class Draw>
void Compare(Isa isa, Draw draw) {
  const BestLabelFunctions* const functions = FindBestLabel(isa);
  ASSERT_EQ(functions != nullptr, isa.has_vectors());
  if (functions == nullptr) return;
  for (int32_t count = 1; count <= 150; ++count) {
    SCOPED_TRACE(count);
    // Exactly as long: a read behind the scores is one behind the allocation.
    const auto scores = std::make_unique<T[]>(count);
    for (int32_t i = 0; i < count; ++i) scores[i] = draw();
    EXPECT_EQ(std::get<BestLabelFunction<T>*>(*functions)(scores.get(), count),
              std::get<BestLabelFunction<T>*>(PlainBestLabel())(scores.get(), count));
  }
}

class BestLabelTest : public ::testing::TestWithParam<Isa> {};

TEST_P(BestLabelTest, FirstOfTheGreatestFloats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(1);
  Compare<float>(GetParam(), [&] {
    return random.Pick({NAN, -NAN, kInfinity, -kInfinity, 0.0f, -0.0f, 1.0f, -1.0f});
  });
  Compare<float>(GetParam(), [&] { return random.Float(-5, -1); });
}

TEST_P(BestLabelTest, FirstOfTheGreatestBytes) {
  Random random(2);
  Compare<uint8_t>(GetParam(), [&] { return static_cast<uint8_t>(random.Int(0, 255)); });
  Compare<uint8_t>(GetParam(), [&] { return static_cast<uint8_t>(random.Int(0, 2)); });
}

INSTANTIATE_TEST_SUITE_P(Isas, BestLabelTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
