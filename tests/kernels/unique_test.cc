// UNIQUE.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "tests/kernels/reference_values.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI64 = DataType::kInt64,
                   kI8 = DataType::kInt8, kI16 = DataType::kInt16, kU8 = DataType::kUInt8;

TEST(UniqueTest, ValuesInTheOrderOfAppearance) {
  OpTester tester("UNIQUE");
  tester.Constant(Ints({7, 3, 7, 9, 3})).Output().Output();
  EXPECT_THAT(Values<int32_t>(tester), ElementsAre(7, 3, 9));
  EXPECT_THAT(Values<int32_t>(tester, 1), ElementsAre(0, 1, 0, 2, 1));
  OpTester late("UNIQUE");
  late.Input(Ints({7})).Output().Output();
  EXPECT_EQ(late.Infer().code(), StatusCode::kDynamicShape);
}

// Against a map: few values and many, beyond what the table begins with.
template <class T>
void CheckUnique(DataType type, Random& random, int count, int64_t range) {
  std::vector<T> in, values;
  std::vector<int32_t> places;
  std::map<T, int32_t> seen;
  for (int i = 0; i < count; ++i) {
    in.push_back(static_cast<T>(random.Int(-range, range)));
    if (in.back() == 0 && random.Chance(0.5)) in.back() = static_cast<T>(-0.0);
    const auto [at, is_new] = seen.try_emplace(in.back(), static_cast<int32_t>(seen.size()));
    if (is_new) values.push_back(in.back());
    places.push_back(at->second);
  }
  OpTester tester("UNIQUE");
  tester.Constant(TestTensor::Of<T>(type, {count}, in)).Output().Output();
  const std::vector<T> actual = Values<T>(tester);
  ASSERT_EQ(actual.size(), values.size());
  EXPECT_EQ(std::memcmp(actual.data(), values.data(), values.size() * sizeof(T)), 0);
  EXPECT_EQ(Values<int32_t>(tester, 1), places);
}

TEST(UniqueTest, AgreesWithAMap) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto count = static_cast<int>(random.Int(1, 3000));
    const int64_t range = random.Pick<int64_t>({1, 30, 1000, 100000});
    CheckUnique<float>(kF32, random, count, range);
    CheckUnique<int32_t>(kI32, random, count, range << 12);
    CheckUnique<int64_t>(kI64, random, count, range << 40);
    CheckUnique<int16_t>(kI16, random, count, range);
    CheckUnique<int8_t>(kI8, random, count, range);
    CheckUnique<uint8_t>(kU8, random, count, range);
  }
}

// Multiples of large powers of two: a multiplication moves none of their bits down to the table's.
TEST(UniqueTest, ValuesThatCollideAreFound) {
  for (const int shift : {40, 48, 56}) {
    std::vector<int64_t> in;
    std::vector<int32_t> places;
    const int values = std::min(3000, 1 << (63 - shift));
    for (int i = 0; i < 2 * values; ++i) {
      in.push_back(int64_t{i % values} << shift);
      places.push_back(i % values);
    }
    OpTester tester("UNIQUE");
    tester.Constant(TestTensor::Of<int64_t>(kI64, {2 * values}, in)).Output().Output();
    EXPECT_EQ(Values<int32_t>(tester, 1), places) << "shift " << shift;
    in.resize(static_cast<size_t>(values));
    EXPECT_EQ(Values<int64_t>(tester), in);
  }
}

// A NaN is taken for the least value of the map, as in LiteRT.
TEST(UniqueTest, NansAreFoundAsInAMap) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpTester tester("UNIQUE");
  tester.Constant(Floats({4}, {2, 1, nan, 3})).Output().Output();
  EXPECT_THAT(Values<int32_t>(tester, 1), ElementsAre(0, 1, 1, 2));
}

}  // namespace
}  // namespace fuselite::kernels::testing
