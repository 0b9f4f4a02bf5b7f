// Which nodes compute row by row.
#include "fusion/plan/rows.h"

#include "fusion/rewrites/replace.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(Rows, AreMadeByTheFewestFirstDimensions) {
  EXPECT_EQ(DimensionsOfRows({1, 196, 1, 64}, 196), 2);
  EXPECT_EQ(DimensionsOfRows({2, 3, 4}, 6), 2);
  EXPECT_EQ(DimensionsOfRows({6}, 6), 1);
  EXPECT_EQ(DimensionsOfRows({2, 3, 4}, 8), std::nullopt);
  EXPECT_EQ(DimensionsOfRows({4, 0, 6}, 24), std::nullopt);
  EXPECT_EQ(DimensionsOfRows({}, 2), std::nullopt);
  EXPECT_EQ(SomeRows({2, 3, 1, 4}, 6, 5), Shape({1, 5, 1, 4}));
}

class RowsOfNodes : public ::testing::Test {
 protected:
  // Of the node that makes `value`.
  std::optional<std::vector<bool>> By(int64_t rows, ValueId value) {
    return InputsByRows(b_.graph(), b_.graph().node(b_.graph().maker(value)), rows);
  }
  Int8Builder b_;
};

TEST_F(RowsOfNodes, OperandsThatBroadcastHaveRowsOrAreTheSameForAll) {
  const ValueId x = b_.Input({2, 5, 4}), column = b_.Input({5, 1}), row = b_.Input({4});
  const ValueId both = b_.Input({2, 5, 1});
  EXPECT_THAT(By(10, b_.Op("ADD", {x, both})), Optional(ElementsAre(true, true)));
  EXPECT_THAT(By(10, b_.Op("ADD", {x, row})), Optional(ElementsAre(true, false)));
  EXPECT_THAT(By(2, b_.Op("ADD", {x, column})), Optional(ElementsAre(true, false)));
  EXPECT_EQ(By(10, b_.Op("ADD", {x, column})), std::nullopt) << "five rows, twice";
  EXPECT_EQ(By(5, b_.Op("ADD", {x, row})), std::nullopt) << "no dimensions make five";
  EXPECT_EQ(By(10, b_.Op("ADD", {x, b_.Constant({2, 5, 4})})), std::nullopt) << "constant rows";
}

TEST_F(RowsOfNodes, SomeLookAlongTheLastDimension) {
  const ValueId x = b_.Input({2, 5, 4});
  EXPECT_THAT(By(10, b_.Softmax(x)), Optional(ElementsAre(true)));
  EXPECT_EQ(By(40, b_.Softmax(x)), std::nullopt);
  EXPECT_THAT(By(10, b_.Dense(x, 3)), Optional(ElementsAre(true, false, false)));
  EXPECT_THAT(By(10, b_.Op("FULLY_CONNECTED", {x, b_.Input({3, 4})})),
              Optional(ElementsAre(true, false)));
}

TEST_F(RowsOfNodes, ReductionsKeepSomeDimensions) {
  const ValueId x = b_.Input({3, 5, 4});
  const auto mean = [&](int32_t axis, double keep) {
    return b_.Op("MEAN", {x, b_.Ints({axis})}, {{"keep_dims", keep}});
  };
  EXPECT_THAT(By(15, mean(2, 1)), Optional(ElementsAre(true, false)));
  EXPECT_THAT(By(15, mean(2, 0)), Optional(ElementsAre(true, false)));
  EXPECT_THAT(By(3, mean(1, 1)), Optional(ElementsAre(true, false)));
  EXPECT_EQ(By(15, mean(1, 1)), std::nullopt);
  EXPECT_EQ(By(15, mean(0, 1)), std::nullopt);
}

TEST_F(RowsOfNodes, WindowsOfOnePixel) {
  const ValueId x = b_.In({1, 4, 5, 8});
  const Attributes by_two = {{"stride_w", 2}, {"stride_h", 2}};
  EXPECT_THAT(By(20, b_.Conv8(x, 6, 1, 0.05f, 0)), Optional(ElementsAre(true, false)));
  EXPECT_EQ(By(20, b_.Conv8(x, 6, 3, 0.05f, 0, {{"padding", kSame}})), std::nullopt);
  EXPECT_EQ(By(6, b_.Conv8(x, 6, 1, 0.05f, 0, by_two)), std::nullopt);
  const ValueId floats = b_.Input({1, 4, 5, 8});
  const ValueId dynamic = b_.ConvBy(floats, b_.Int8Constant({6, 1, 1, 8}, 0.02f));
  EXPECT_EQ(By(20, dynamic), std::nullopt) << "has one range for the image";
}

TEST_F(RowsOfNodes, OperandsOfTails) {
  const ValueId x = b_.Input({1, 6, 4}), residual = b_.Input({1, 6, 4}), mask = b_.Input({1, 6, 1});
  const auto with_tail = [&](ValueId operand, kernels::TailOperand place, int64_t rows_per_batch) {
    place.input = 1;
    Node node =
        MakeChain(b_.graph(), x, {kernels::TailStage::Binary(kernels::BinaryKind::kAdd, place)});
    node.inputs.push_back(operand);
    node.tail_inputs = 1;
    node.tail.rows_per_batch = rows_per_batch;
    node.outputs = {b_.Input({1, 6, 4})};
    return InputsByRows(b_.graph(), node, 6);
  };
  EXPECT_THAT(with_tail(residual, {.row_stride = 4, .channel_stride = 1}, INT64_MAX),
              Optional(ElementsAre(true, true)));
  EXPECT_THAT(with_tail(mask, {.row_stride = 1}, 6), Optional(ElementsAre(true, true)));
  EXPECT_THAT(with_tail(b_.Input({4}), {.channel_stride = 1}, INT64_MAX),
              Optional(ElementsAre(true, false)));
  EXPECT_EQ(with_tail(b_.Input({1, 3, 4}), {.row_stride = 4, .channel_stride = 1}, 3), std::nullopt)
      << "the same three rows for each batch of three";
}

TEST_F(RowsOfNodes, TailsThatDifferByChannelWhereThatIsARow) {
  const ValueId x = b_.Input({1, 6});
  const auto with_stage = [&](const kernels::TailStage& stage, bool operand) {
    Node node = MakeChain(b_.graph(), x, {stage});
    if (operand) node.inputs.push_back(b_.Constant({6}));
    node.tail_inputs = operand ? 1 : 0;
    node.outputs = {b_.Input({1, 6})};
    return InputsByRows(b_.graph(), node, 6);
  };
  using kernels::TailStage;
  EXPECT_THAT(with_stage(TailStage::Unary(kernels::UnaryKind::kAbs), false),
              Optional(ElementsAre(true)));
  const kernels::TailOperand by_channel = {.input = 1, .channel_stride = 1};
  EXPECT_EQ(with_stage(TailStage::Binary(kernels::BinaryKind::kAdd, by_channel), true),
            std::nullopt);
  TailStage scales;
  scales.kind = TailStage::Kind::kDequantize;
  scales.scales = std::vector<float>(6, 0.5f);
  EXPECT_EQ(with_stage(scales, false), std::nullopt);
}

TEST_F(RowsOfNodes, WhatMovesOrMixesHasNone) {
  const ValueId x = b_.Input({1, 6, 6});
  EXPECT_EQ(By(6, b_.Transpose(x, {0, 2, 1})), std::nullopt);
  EXPECT_EQ(By(6, b_.Op("CONCATENATION", {x, x}, {{"axis", 2}})), std::nullopt);
  EXPECT_THAT(By(6, b_.Op("RESHAPE", {x, b_.Ints({6, 2, 3})})), Optional(ElementsAre(true, false)));
}

}  // namespace
}  // namespace fuselite::fusion::testing
