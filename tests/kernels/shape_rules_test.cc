// What shape rules share, each condition from both of its sides.
#include "kernels/shape_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace fuselite::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

template <class T>
TensorInfo Constant(DataType type, const std::vector<T>& values) {
  return {.type = type, .shape = {static_cast<int32_t>(values.size())}, .data = values.data()};
}

TEST(ReadIntegers, TakesTheTypesThatAreAskedFor) {
  using enum IntegerTypes;
  const std::map<DataType, std::vector<IntegerTypes>> takes = {
      {DataType::kInt8, {kSigned}},
      {DataType::kInt16, {kInt16Or32, kSigned}},
      {DataType::kInt32, {kInt32, kInt32Or64, kInt16Or32, kSigned}},
      {DataType::kInt64, {kInt32Or64, kSigned}},
      {DataType::kUInt8, {}},
      {DataType::kFloat32, {}},
  };
  const std::vector<int64_t> memory(2);
  for (const auto& [type, those] : takes) {
    for (const IntegerTypes asked : {kInt32, kInt32Or64, kInt16Or32, kSigned}) {
      const bool expected = std::ranges::count(those, asked) > 0;
      const TensorInfo info{.type = type, .shape = {2}, .data = memory.data()};
      const auto read = ReadIntegers(info, "the axis", asked);
      EXPECT_EQ(read.ok(), expected) << DataTypeName(type) << " for " << static_cast<int>(asked);
      if (expected) continue;
      EXPECT_EQ(read.status().code(), StatusCode::kUnsupported);
      EXPECT_EQ(read.status().message(), "the axis is " + std::string(DataTypeName(type)));
    }
  }
}

TEST(ReadIntegers, ReadsEachWidthWithItsSign) {
  const std::vector<int8_t> bytes = {-1, 100, 3};
  const std::vector<int16_t> shorts = {-2, 30000, 4};
  const std::vector<int32_t> ints = {-3, kMost, 5};
  const std::vector<int64_t> longs = {-4, int64_t{1} << 40, 6};
  const auto read = [](const TensorInfo& info) {
    return *ReadIntegers(info, "it", IntegerTypes::kSigned);
  };
  EXPECT_THAT(read(Constant(DataType::kInt8, bytes)), ElementsAre(-1, 100, 3));
  EXPECT_THAT(read(Constant(DataType::kInt16, shorts)), ElementsAre(-2, 30000, 4));
  EXPECT_THAT(read(Constant(DataType::kInt32, ints)), ElementsAre(-3, kMost, 5));
  EXPECT_THAT(read(Constant(DataType::kInt64, longs)), ElementsAre(-4, int64_t{1} << 40, 6));
}

TEST(ReadIntegers, WaitsForValuesOfTheRunUnlessThereAreNone) {
  TensorInfo info{.type = DataType::kInt32, .shape = {1}};
  const auto read = ReadIntegers(info, "the size", IntegerTypes::kInt32);
  EXPECT_EQ(read.status().code(), StatusCode::kDynamicShape);
  info.shape = {0};
  EXPECT_THAT(*ReadIntegers(info, "the size", IntegerTypes::kInt32), ElementsAre());
}

TEST(ReadInteger, TakesOneElement) {
  const std::vector<int32_t> values = {7, 8};
  TensorInfo info = Constant(DataType::kInt32, values);
  EXPECT_THAT(ReadInteger(info, "the axis", IntegerTypes::kInt32).status().message(),
              HasSubstr("the axis has 2 elements"));
  info.shape = {0};
  EXPECT_FALSE(ReadInteger(info, "the axis", IntegerTypes::kInt32).ok());
  for (const Shape& one : {Shape(), Shape{1}, Shape{1, 1}}) {
    info.shape = one;
    EXPECT_EQ(*ReadInteger(info, "the axis", IntegerTypes::kInt32), 7);
  }
  info.type = DataType::kFloat32;
  EXPECT_FALSE(ReadInteger(info, "the axis", IntegerTypes::kInt32).ok());
}

TEST(ResolveAxis, CountsFromBothEnds) {
  constexpr int kRefused = -100;  // which is no axis, wrong ones included
  struct Case {
    int64_t axis;
    int rank, expected;
  };
  for (const auto& [axis, rank, expected] : {Case{0, 3, 0},
                                             {2, 3, 2},
                                             {-1, 3, 2},
                                             {-3, 3, 0},
                                             {3, 3, kRefused},
                                             {-4, 3, kRefused},
                                             {0, 1, 0},
                                             {0, 0, kRefused},
                                             {int64_t{1} << 32, 3, kRefused},
                                             {-1, 0, kRefused}}) {
    const Result<int> resolved = ResolveAxis(axis, rank);
    EXPECT_EQ(resolved.ok() ? *resolved : kRefused, expected) << axis << " of " << rank;
  }
}

TEST(MakeShape, RefusesWhatIsNoShape) {
  EXPECT_EQ(*MakeShape({}), Shape());
  EXPECT_EQ(*MakeShape({0, 3}), Shape({0, 3}));
  EXPECT_EQ(*MakeShape({kMost}), Shape({kMost}));
  EXPECT_EQ(MakeShape({2, -1}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeShape({int64_t{kMost} + 1}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeShape(std::vector<int64_t>(Shape::kMaxRank, 1))->rank(), Shape::kMaxRank);
  EXPECT_EQ(MakeShape(std::vector<int64_t>(Shape::kMaxRank + 1, 1)).status().code(),
            StatusCode::kUnsupported);
  EXPECT_THAT(MakeShape({kMost, kMost, kMost}).status().message(), HasSubstr("too many elements"));
}

TEST(SetOutput, KeepsToTheTypeThatTheModelStates) {
  OpDescription op;
  op.outputs.resize(2);
  op.outputs[1].type = DataType::kInt8;
  EXPECT_TRUE(SetOutput(op, 0, DataType::kFloat32, {2, 3}).ok());
  EXPECT_EQ(op.outputs[0].type, DataType::kFloat32);
  EXPECT_EQ(op.outputs[0].shape, Shape({2, 3}));
  EXPECT_TRUE(SetOutput(op, 1, DataType::kInt8, {4}).ok());
  EXPECT_EQ(SetOutput(op, 1, DataType::kFloat32, {5}).message(),
            "output 1 is int8, expected float32");
  EXPECT_EQ(op.outputs[1].shape, Shape({4}));
  EXPECT_FALSE(RequireOutputType(op, 1, DataType::kUInt8).ok());
}

TEST(Quantizations, AreTheSameOrKept) {
  const auto with = [](DataType type, float scale, int32_t zero_point) {
    return TensorInfo{.type = type, .quantization = {{scale}, {zero_point}}};
  };
  const TensorInfo from = with(DataType::kInt8, 0.5f, 3);
  EXPECT_TRUE(RequireSameQuantization(from, from).ok());
  EXPECT_FALSE(RequireSameQuantization(from, with(DataType::kInt8, 0.25f, 3)).ok());
  EXPECT_FALSE(RequireSameQuantization(from, with(DataType::kInt8, 0.5f, 2)).ok());
  EXPECT_TRUE(RequireKeptQuantization(from, from).ok());
  EXPECT_FALSE(RequireKeptQuantization(from, with(DataType::kInt8, 0.5f, 2)).ok());
  const TensorInfo odd = with(DataType::kInt16, 0.5f, 3), even = with(DataType::kInt16, 0.5f, 0);
  EXPECT_TRUE(RequireSameQuantization(odd, odd).ok());
  EXPECT_THAT(RequireKeptQuantization(odd, odd).message(), HasSubstr("zero point of int16 is 3"));
  EXPECT_TRUE(RequireKeptQuantization(even, even).ok());
}

TEST(Rows, ArePitchedWhereTheirStartsAreFurtherApart) {
  const OperatorDef& def = *FindOperator("ADD");
  const auto rows = [](int64_t pitch) {
    return TensorInfo{.type = DataType::kFloat32, .shape = {2, 3}, .row_pitch = pitch};
  };
  EXPECT_TRUE(IsDense(rows(0)));
  EXPECT_TRUE(IsDense(rows(3)));
  EXPECT_FALSE(IsDense(rows(4)));
  EXPECT_TRUE(IsDense({.type = DataType::kFloat32, .row_pitch = 4})) << "a scalar has no rows";
  OpDescription op;
  op.op = &def;
  op.inputs = {rows(0), rows(0)};
  op.outputs = {rows(0)};
  EXPECT_TRUE(RequireDense(op).ok());
  for (TensorInfo* const each : {&op.inputs[0], &op.inputs[1], &op.outputs[0]}) {
    each->row_pitch = 5;
    EXPECT_EQ(RequireDense(op).message(), "ADD takes no pitched rows");
    each->row_pitch = 0;
  }
  op.inputs[1].row_pitch = 5;
  EXPECT_TRUE(RequireDenseInputs(op, {0}).ok());
  EXPECT_EQ(RequireDenseInputs(op, {0, 1}).message(), "ADD takes no pitched rows in input 1");
  EXPECT_TRUE(RequireDenseInputs(op, {2}).ok()) << "an input that is not there";
  op.tail_inputs = 1;
  EXPECT_TRUE(RequireDenseInputs(op, {0, 1}).ok()) << "the tail's";
}

TEST(Elements, HaveASize) {
  EXPECT_EQ(*ElementBytes(DataType::kFloat32), 4);
  EXPECT_EQ(*ElementBytes(DataType::kInt8), 1);
  EXPECT_EQ(*ElementBytes(DataType::kBool), 1);
  EXPECT_EQ(*ElementBytes(DataType::kComplex128), 16);
  EXPECT_FALSE(ElementBytes(DataType::kInt4).ok());
  EXPECT_FALSE(ElementBytes(DataType::kString).ok());
  EXPECT_TRUE(RequireSized(DataType::kInt4).ok());
  EXPECT_FALSE(RequireSized(DataType::kString).ok());
  EXPECT_FALSE(RequireSized(DataType::kResource).ok());
}

}  // namespace
}  // namespace fuselite::kernels
