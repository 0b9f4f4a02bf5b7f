#include "tools/inputs/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace fuselite::tools {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Array Floats(std::vector<float> values) {
  Array array{DataType::kFloat32, Shape{static_cast<int32_t>(values.size())}, {}};
  array.bytes.resize(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

TEST(CompareTest, GivesMaximumMeanAndDeviation) {
  const Difference difference = Compare(Floats({1, 2, 6}), Floats({1, 3, 4}));
  EXPECT_DOUBLE_EQ(difference.max, 2);
  EXPECT_DOUBLE_EQ(difference.mean, 1);
  EXPECT_NEAR(difference.deviation, std::sqrt(2.0 / 3), 1e-12);
  EXPECT_DOUBLE_EQ(difference.range, 3);
}

TEST(CompareTest, NaNAndInfinityAgreeWithThemselvesOnly) {
  EXPECT_EQ(Compare(Floats({kNaN, INFINITY}), Floats({kNaN, INFINITY})).max, 0);
  EXPECT_EQ(Compare(Floats({kNaN}), Floats({1})).max, INFINITY);
  EXPECT_EQ(Compare(Floats({INFINITY}), Floats({1})).max, INFINITY);
}

TEST(CompareTest, TheRangeIsOfTheFiniteValues) {
  EXPECT_DOUBLE_EQ(Compare(Floats({kNaN, 1, 3}), Floats({kNaN, 1, 3})).range, 2);
  EXPECT_DOUBLE_EQ(Compare(Floats({kNaN}), Floats({kNaN})).range, 0);
  EXPECT_DOUBLE_EQ(Compare(Floats({-7}), Floats({-7})).range, 7);
}

TEST(CompareTest, OtherShapesAndTypesDiffer) {
  EXPECT_FALSE(Compare(Floats({1}), Floats({1, 1})).same_shape);
  Array bytes{DataType::kInt8, Shape{1}, std::vector<std::byte>(1)};
  EXPECT_EQ(Compare(bytes, Floats({0})).max, INFINITY);
  EXPECT_TRUE(Compare(Floats({}), Floats({})).same_shape);
}

TEST(CompareTest, IntegersAreSigned) {
  const Array a{DataType::kInt8, Shape{1}, {std::byte{0xFF}}};
  const Array b{DataType::kInt8, Shape{1}, {std::byte{0x01}}};
  EXPECT_EQ(Compare(a, b).max, 2);
}

TEST(ToleranceTest, IntegersAreExactFloatsFollowTheRange) {
  EXPECT_EQ(DefaultTolerance(DataType::kInt8, 100, 0.02), 0);
  EXPECT_DOUBLE_EQ(DefaultTolerance(DataType::kFloat32, 100, kFloatPart), 1e-3);
  EXPECT_DOUBLE_EQ(DefaultTolerance(DataType::kFloat32, 0, kFloatPart), 1e-6);
  EXPECT_DOUBLE_EQ(DefaultTolerance(DataType::kFloat32, 100, 0.02), 2);
}

TEST(ToleranceTest, RoundedActivationsAreAllowedMore) {
  using kernels::Precision;
  const interpreter::Model plain;
  EXPECT_EQ(AllowedPart(plain, Precision::kDefault), kFloatPart);
  EXPECT_EQ(AllowedPart(plain, Precision::kStrict), kFloatPart);
  EXPECT_EQ(AllowedPart(plain, Precision::kFast), 0.1);
}

}  // namespace
}  // namespace fuselite::tools
