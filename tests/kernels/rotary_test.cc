#include "kernels/rotary/rotary.h"

#include "tests/kernels/beside_reference.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32;

TestTensor Floats(Shape shape, const std::vector<float>& values) {
  return TestTensor::Of<float>(kF32, shape, values);
}

std::vector<float> Reference(OpTester& tester, int32_t width) {
  tester.params<RotaryParams>().width = width;
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>();
}

TEST(RotaryTest, TurnsPairsHalfAHeadApart) {
  OpTester tester("FUSELITE_ROTARY");
  tester.Input(Floats({1, 4}, {1, 2, 3, 4}));
  tester.Input(Floats({2}, {0, 2})).Input(Floats({2}, {1, 0}));
  EXPECT_THAT(Reference(tester, 4), ElementsAre(-3, 4, 1, 8));
}

TEST(RotaryTest, TablesOfTheWholeWidthHaveEntriesForBothHalves) {
  OpTester tester("FUSELITE_ROTARY");
  tester.Input(Floats({1, 4}, {1, 2, 3, 4}));
  tester.Input(Floats({4}, {0, 2, 1, 1})).Input(Floats({4}, {1, 0, 0, 5}));
  EXPECT_THAT(Reference(tester, 4), ElementsAre(-3, 4, 3, 14));
}

// Two positions, each with two rows of two heads.
TEST(RotaryTest, AllHeadsOfAPositionAreTurnedAlike) {
  OpTester tester("FUSELITE_ROTARY");
  tester.Input(Floats({2, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}));
  tester.Input(Floats({2, 1, 1}, {1, 0})).Input(Floats({2, 1, 1}, {0, 1}));
  EXPECT_THAT(Reference(tester, 2),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, -2, 1, -4, 3, -6, 5, -8, 7));
}

TEST(RotaryTest, RefusesWhatDoesNotFit) {
  struct Case {
    int32_t width;
    Shape x, cos, sin;
  };
  for (const Case& c :
       {Case{0, {2, 4}, {2}, {2}}, Case{-2, {2, 4}, {2}, {2}}, Case{3, {2, 3}, {1}, {1}},
        Case{4, {2, 6}, {2}, {2}}, Case{4, {2, 4}, {3}, {3}}, Case{4, {2, 4}, {2}, {4}},
        Case{4, {2, 4}, {3, 2}, {3, 2}}, Case{4, {2, 4}, {}, {}}, Case{4, {}, {2}, {2}},
        // Three runs of dimensions that repeat or not.
        Case{4, {2, 3, 2, 3, 4}, {2, 1, 2, 1, 2}, {2, 1, 2, 1, 2}}}) {
    OpTester tester("FUSELITE_ROTARY");
    tester.params<RotaryParams>().width = c.width;
    for (const Shape& shape : {c.x, c.cos, c.sin}) {
      tester.Input(TestTensor({.type = kF32, .shape = shape}));
    }
    EXPECT_FALSE(tester.Infer().ok()) << c.width << ' ' << c.x << ' ' << c.cos << ' ' << c.sin;
  }
}

class RotaryIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(RotaryIsaTest, HighwayHasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FUSELITE_ROTARY");
    const auto half = static_cast<int32_t>(random.Pick({1, 2, 3, 7, 8, 15, 16, 17, 32, 33}));
    const auto heads = static_cast<int32_t>(random.Int(1, 3));
    const Shape rows{static_cast<int32_t>(random.Int(1, 4)), static_cast<int32_t>(random.Int(1, 5)),
                     heads * 2 * half};
    const int32_t table = random.Chance(0.5) ? half : 2 * half;
    tester.params<RotaryParams>().width = 2 * half;
    const auto input = [&](const Shape& shape) {
      TensorInfo info{.type = kF32, .shape = shape};
      info.row_pitch = RandomPitch(random, shape.dim(-1));
      TestTensor tensor(info, 4 * random.Int(0, 3));
      tensor.Fill(random, -2, 2);
      tester.Input(tensor);
    };
    input(rows);
    for (int i = 0; i < 2; ++i) {
      const Shape shapes[] = {{table},
                              {rows[0], 1, table},
                              {rows[1], table},
                              {1, rows[1], table},
                              {rows[0], rows[1], table}};
      input(random.Pick({shapes[0], shapes[1], shapes[2], shapes[3], shapes[4]}));
    }
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    PitchOutput(tester, random);
    const auto both = RunHighway(tester, GetParam(), seed, random.Int(0, 3));
    if (!both) continue;
    ExpectSame<float>(both->expected, both->actual, "rotary");
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, RotaryIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
