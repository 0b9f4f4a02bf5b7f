#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace fuselite {
namespace {

TEST(Shape, OfAFileIsOneThatCanBeCountedIn) {
  constexpr int32_t kMost = INT32_MAX;
  struct {
    std::vector<int32_t> dims;
    bool taken;
  } const kCases[] = {{{}, true},
                      {{1, 224, 224, 3}, true},
                      {{0, kMost, 5}, true},
                      {{-1}, false},
                      {{4, -1, 4}, false},
                      {{0, -1}, false},
                      {{kMost}, true},
                      {{kMost, kMost, kMost}, false},
                      {{0, kMost, kMost, kMost}, false},
                      {{1 << 30, 1 << 30, 4}, true},
                      {{1073741825, 2, kMost}, false},  // 2^62 and a little more
                      {{kMost, kMost, kMost, 0}, false},
                      {std::vector<int32_t>(16, 1), true},
                      {std::vector<int32_t>(16, 2), true},
                      {std::vector<int32_t>(16, 1 << 10), false},
                      {std::vector<int32_t>(17, 1), false}};
  for (const auto& [dims, taken] : kCases) {
    const std::optional<Shape> shape = Shape::FromDims(dims);
    EXPECT_EQ(shape.has_value(), taken) << testing::PrintToString(dims);
    if (taken && shape) {
      EXPECT_EQ(*shape, Shape(dims));
    }
  }
}

TEST(Shape, CountsItsElements) {
  const Shape shape({2, 3, 5});
  EXPECT_EQ(shape.elements(), 30);
  EXPECT_EQ(shape.elements(1, 3), 15);
  EXPECT_EQ(shape.elements(1, 1), 1);
  EXPECT_EQ(shape.dim(-1), 5);
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(shape.ToString(), "[2,3,5]");
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_NE(shape, Shape({2, 3}));
}

TEST(DataType, IsOneOfThoseThatAreNamed) {
  for (int value = 0; value < kDataTypeCount; ++value) {
    EXPECT_TRUE(IsKnownDataType(value)) << value;
    EXPECT_NE(DataTypeName(static_cast<DataType>(value)), "");
  }
  for (const int value : {-1, INT32_MIN, kDataTypeCount, INT32_MAX}) {
    EXPECT_FALSE(IsKnownDataType(value)) << value;
  }
}

TEST(TensorInfo, RoundsHalfBytesUpAndKnowsItsRows) {
  EXPECT_EQ((TensorInfo{.type = DataType::kInt4, .shape = {3}}.bytes()), 2u);
  EXPECT_EQ((TensorInfo{.type = DataType::kInt4, .shape = {4}}.bytes()), 2u);
  EXPECT_EQ((TensorInfo{.type = DataType::kFloat32, .shape = {3}}.bytes()), 12u);
  // 2^58 elements of 8 bytes: their bits do not fit in 64 bits.
  const TensorInfo large{.type = DataType::kInt64, .shape = {1 << 29, 1 << 29}};
  EXPECT_EQ(large.bytes(), size_t{1} << 61);
  EXPECT_EQ(large.estimated_bytes(), 0x1p61);
  TensorInfo rows{.type = DataType::kFloat32, .shape = {2, 3}};
  EXPECT_EQ(rows.pitch(), 3);
  rows.row_pitch = 8;
  EXPECT_EQ(rows.pitch(), 8);
  EXPECT_EQ((TensorInfo{.type = DataType::kFloat32, .shape = Shape()}.pitch()), 1);
}

}  // namespace
}  // namespace fuselite
