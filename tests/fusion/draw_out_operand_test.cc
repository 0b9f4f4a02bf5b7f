// Operands with a value for each short row, drawn out to whole rows.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(DrawOutOperand, OfGroups) {
  for (const int32_t n : {2, 4, 47}) {
    for (const char* op : {"SUB", "MUL", "SQUARED_DIFFERENCE"}) {
      for (const bool first : {false, true}) {
        GraphBuilder b;
        const ValueId x = b.Input({2, 9, 6, n});
        const ValueId y = b.Op("NEG", {b.Input({2, 1, 6, 1})});
        const ValueId z = first ? b.Op(op, {y, x}) : b.Op(op, {x, y});
        b.Output(z);
        EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                    ElementsAre("NEG", "BROADCAST_TO", op));
      }
    }
  }
}

TEST(DrawOutOperand, OfBytes) {
  Int8Builder b;
  const ValueId x = b.In({1, 12, 5, 3}), y = b.In({5, 1}, 0.02f, 4);
  b.Out(b.Int8Op("SUB", {x, y}, 0.05f, -7));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), Contains("BROADCAST_TO"));
}

// Of constants the drawn out one is a constant, too.
TEST(DrawOutOperand, OfConstants) {
  GraphBuilder b;
  b.Output(b.Op("ADD", {b.Input({20, 7, 4}), b.Constant({7, 1})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("ADD"));
}

// Long rows, one row, too few that meet the same values, and values that differ in each.
TEST(DrawOutOperand, NotWhereItWouldNotHelp) {
  struct Case {
    Shape x, y;
  };
  for (const Case& c : {Case{{20, 7, 48}, {7, 1}}, Case{{20, 7, 4}, {1}}, Case{{20, 7, 4}, {1, 1}},
                        Case{{7, 7, 4}, {7, 1}}, Case{{20, 7, 4}, {20, 7, 1}},
                        Case{{20, 7, 4}, {20, 1, 1}}, Case{{20, 7, 1}, {7, 1}}}) {
    GraphBuilder b;
    const ValueId y = b.Op("NEG", {b.Input(c.y)});
    b.Output(b.Op("SUB", {b.Op("NEG", {b.Input(c.x)}), y}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(), Not(Contains("BROADCAST_TO")));
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
