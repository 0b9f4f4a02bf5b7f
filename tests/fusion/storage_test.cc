// Reshapes, concatenations, splits and slices as addresses.
#include "fusion/plan/storage.h"

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;

TEST(Storage, ReshapeInTheMiddleIsNoStep) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 4, 4, 3}), 6, 3);
  const ValueId flat = b.Op("RESHAPE", {c, b.Ints({1, 96})});
  b.Output(b.Dense(flat, 5));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D", "FULLY_CONNECTED"));
  EXPECT_THAT(outcome.report.rewrites,
              Contains(Property(&RewriteRecord::ToString, "place RESHAPE in memory: node 1")));
}

TEST(Storage, ReshapeAtTheEndWritesTheOutput) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 4, 4, 3}), 6, 3);
  b.Output(b.Op("RESHAPE", {c, b.Ints({2, 48})}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D"));
  EXPECT_EQ(outcome.report.steps[0].placement, "inside output 0");
}

TEST(Storage, ReshapeFromInputToOutputIsACopy) {
  GraphBuilder b;
  b.Output(b.Op("RESHAPE", {b.Input({4, 6}), b.Ints({24})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("RESHAPE"));
}

TEST(Storage, ReshapeOfAnObservedValueIsACopyToTheOther) {
  GraphBuilder b;
  const ValueId c = b.Dense(b.Input({4, 6}), 6);
  b.Output(c);
  b.Output(b.Op("RESHAPE", {c, b.Ints({24})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("FULLY_CONNECTED", "RESHAPE"));
}

TEST(Storage, ConcatenationOfChannelsIsWrittenInPlace) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 4});
  const ValueId left = b.Conv(x, 8, 3), right = b.Conv(x, 3, 1);
  const ValueId whole = b.Op("CONCATENATION", {left, right}, {{"axis", 3}});
  b.Output(b.Conv(whole, 7, 3));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D", "CONV_2D", "CONV_2D"));
  EXPECT_EQ(outcome.report.steps[0].placement, "inside CONCATENATION_2");
  b.graph().value(whole).name.clear();
  EXPECT_EQ(RunGraph(b.graph(), Fused()).report.steps[0].placement,
            "inside value " + std::to_string(whole));
}

TEST(Storage, ConcatenationsNest) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 3, 5, 4});
  const ValueId inner = b.Op("CONCATENATION", {b.Conv(x, 2, 1), b.Conv(x, 3, 1)}, {{"axis", -1}});
  const ValueId outer = b.Op("CONCATENATION", {b.Conv(x, 4, 1), inner}, {{"axis", -1}});
  b.Output(outer);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("CONV_2D", "CONV_2D", "CONV_2D"));
}

TEST(Storage, ConcatenationOfReshapedHeadsIsOneBlock) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 4, 4, 3});
  std::vector<ValueId> heads;
  for (int stride : {1, 2}) {
    const ValueId c = b.Conv(x, 8, 3, {{"stride_w", stride}, {"stride_h", stride}});
    heads.push_back(b.Op("RESHAPE", {c, b.Ints({1, -1, 4})}));
  }
  b.Output(b.Op("CONCATENATION", heads, {{"axis", 1}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D", "CONV_2D"));
}

TEST(Storage, ConcatenationOfAnInputIsACopy) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 4});
  b.Output(b.Op("CONCATENATION", {x, b.Conv(x, 3, 1)}, {{"axis", 3}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("CONV_2D", "CONCATENATION"));
}

TEST(Storage, ConcatenationOfAValueWithItselfIsACopy) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 6, 5, 4}), 3, 1);
  b.Output(b.Op("CONCATENATION", {c, c}, {{"axis", 3}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("CONV_2D", "CONCATENATION"));
}

TEST(Storage, SplitIsReadInPlace) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 6, 5, 4}), 8, 3);
  const auto parts = b.Op("SPLIT", {b.Ints({1}, {3}), c}, {{"num_splits", 2}}, 2);
  b.Output(b.Conv(parts[0], 3, 3));
  b.Output(b.Conv(parts[1], 5, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("CONV_2D", "CONV_2D", "CONV_2D"));
}

TEST(Storage, SplitIntoOutputsIsACopy) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 6, 5, 4}), 8, 3);
  const auto parts = b.Op("SPLIT", {b.Ints({1}, {3}), c}, {{"num_splits", 2}}, 2);
  b.Output(parts[0]);
  b.Output(parts[1]);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D", "SPLIT"));
}

TEST(Storage, SliceOfAnInputIsReadInPlace) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 8});
  const ValueId part = b.Op("SLICE", {x, b.Ints({0, 2, 0, 0}), b.Ints({1, 3, 5, 8})});
  b.Output(b.Conv(part, 3, 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D"));
}

TEST(Storage, EveryOperatorOfPartsIsPlaced) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 6, 5, 4}), 8, 3);
  const auto uneven =
      b.Op("SPLIT_V", {c, b.Ints({3, 5}), b.Ints({1}, {3})}, {{"num_splits", 2}}, 2);
  const ValueId part = b.Op("STRIDED_SLICE", {uneven[1], b.Ints({0, 1, 0, 0}), b.Ints({1, 5, 5, 5}),
                                              b.Ints({1, 1, 1, 1})});
  const auto rows = b.Op("UNPACK", {b.Op("SQUEEZE", {part})}, {{"num", 4}, {"axis", 0}}, 4);
  const ValueId packed =
      b.Op("PACK", {b.Dense(rows[0], 5), b.Dense(rows[3], 5)}, {{"values_count", 2}, {"axis", 0}});
  b.Output(b.Conv(uneven[0], 2, 3));
  b.Output(b.Dense(packed, 6));
  EXPECT_THAT(
      ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
      ElementsAre("CONV_2D", "FULLY_CONNECTED", "FULLY_CONNECTED", "CONV_2D", "FULLY_CONNECTED"));
}

TEST(Storage, QuantizedConcatenationIsWrittenInPlace) {
  Int8Builder b;
  const ValueId x = b.In({1, 6, 5, 4});
  const ValueId left = b.Conv8(x, 8, 3, 0.02f, 5), right = b.Conv8(x, 3, 1, 0.02f, 5);
  b.Out(b.Int8Op("CONCATENATION", {left, right}, 0.02f, 5, {{"axis", 3}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "CONV_2D", "CONV_2D", "DEQUANTIZE"));
}

TEST(InPlace, WritesOverWhatNobodyReadsAfterwards) {
  GraphBuilder b;
  const ValueId x = b.Op("TRANSPOSE", {b.Input({16, 4}), b.Ints({1, 0})});
  const ValueId y = b.Op("TRANSPOSE", {b.Input({16, 4}), b.Ints({1, 0})});
  b.Output(b.Dense(b.Op("ADD", {x, y}), 3));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  ASSERT_THAT(outcome.ops(), ElementsAre("TRANSPOSE", "TRANSPOSE", "ADD", "FULLY_CONNECTED"));
  EXPECT_THAT(outcome.report.steps[2].placement, HasSubstr("inside TRANSPOSE"));
}

TEST(InPlace, NotOverWhatIsReadLaterNorOverAnInput) {
  GraphBuilder b;
  const ValueId x = b.Op("TRANSPOSE", {b.Input({4, 4}), b.Ints({1, 0})});
  const ValueId y = b.Op("EXP", {x});
  b.Output(b.Op("ADD", {b.Op("REVERSE_V2", {y, b.Ints({1})}), x}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  ASSERT_THAT(outcome.ops(), ElementsAre("TRANSPOSE", "EXP", "REVERSE_V2", "ADD"));
  EXPECT_EQ(outcome.report.steps[1].placement, "arena");

  GraphBuilder input;
  input.Output(input.Dense(input.Op("EXP", {input.Input({4, 4})}), 3));
  EXPECT_EQ(ExpectFusedEqualsUnfused(input.graph(), 0).report.steps[0].placement, "arena");
}

// A row of the operand is the other one, and would change while others still have to read it.
TEST(InPlace, NotOverWhatTheNodeReadsAsAnotherOperandToo) {
  GraphBuilder b;
  const ValueId x = b.Op("TRANSPOSE", {b.Input({6, 4}), b.Ints({1, 0})});
  const ValueId row = b.Op("SLICE", {x, b.Ints({0, 0}), b.Ints({1, 6})});
  b.Output(b.Dense(b.Op("SUB", {x, row}), 3));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("TRANSPOSE", "SUB", "FULLY_CONNECTED"));
}

TEST(InPlace, AnOutputIsMadeWhereItsOperandWas) {
  GraphBuilder b;
  const ValueId x = b.Op("TRANSPOSE", {b.Input({4, 6}), b.Ints({1, 0})});
  b.Output(b.Op("EXP", {x}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  ASSERT_THAT(outcome.ops(), ElementsAre("TRANSPOSE", "EXP"));
  EXPECT_EQ(outcome.report.steps[0].placement, "inside output 0");
}

TEST(StoragePlan, MovesWhatIsInside) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 4});
  const ValueId part = b.Dense(x, 3), other = b.Dense(x, 2), whole = b.Dense(x, 5),
                wider = b.Dense(x, 9);
  StoragePlan plan(b.graph());
  ASSERT_TRUE(plan.Place(part, whole, 0, 5));
  ASSERT_TRUE(plan.Place(other, whole, 3 * sizeof(float), 5));
  EXPECT_EQ(plan.Span(other), 7 * sizeof(float));
  ASSERT_TRUE(plan.Place(whole, wider, 4 * sizeof(float), 9));
  EXPECT_EQ(plan.of(other).root, wider);
  EXPECT_EQ(plan.of(other).offset, 7 * sizeof(float));
  EXPECT_EQ(plan.of(other).pitch, 9);
  EXPECT_FALSE(plan.Place(part, other, 0, 3)) << "it is inside of something already";
  EXPECT_FALSE(plan.Place(x, whole, 0, 4)) << "inputs are bound from outside";
  const ValueId empty = b.Op("RESHAPE", {b.Op("NEG", {b.Input({3, 0})}), b.Ints({0})});
  StoragePlan of_empty(b.graph());
  EXPECT_FALSE(of_empty.Place(empty, wider, 0, 9)) << "it has no rows";
}

}  // namespace
}  // namespace fuselite::fusion::testing
