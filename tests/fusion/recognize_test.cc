// Functions and layers that exporters spell out of small operators.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

TEST(Silu, InEitherOrderAndIntoItsLayer) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 6, 5, 8}), 6, 3);
  const ValueId d = b.Depthwise(b.Op("MUL", {c, b.Op("LOGISTIC", {c})}), 3);
  b.Output(b.Op("MUL", {b.Op("LOGISTIC", {d}), d}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D + silu", "DEPTHWISE_CONV_2D + silu"));
  EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0, 1, 2));
}

TEST(Silu, OfAValueThatOthersReadIsAStep) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 9});
  b.Output(b.Op("MUL", {x, b.Op("LOGISTIC", {x})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("FUSELITE_ELEMENTWISE + silu"));
}

TEST(Silu, NotOfAnotherValue) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 9}), y = b.Input({4, 9});
  b.Output(b.Op("MUL", {x, b.Op("LOGISTIC", {y})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("LOGISTIC + mul #1"));
}

// RELU6(x + 3) in the ways that exporters have.
ValueId ShiftedRelu6(GraphBuilder& b, ValueId x, int way) {
  if (way == 0) return b.Op("RELU6", {b.Op("ADD", {x, b.Scalar(3)})});
  if (way == 1) {
    return b.Op("ADD", {b.Scalar(3), x}, {{"fused_activation_function", kRelu6}});
  }
  if (way == 2) {
    const ValueId relu = b.Op("ADD", {x, b.Scalar(3)}, {{"fused_activation_function", kRelu}});
    return b.Op("MINIMUM", {relu, b.Scalar(6)});
  }
  const ValueId sum = b.Op("ADD", {x, b.Scalar(3)});
  return b.Op("MINIMUM", {b.Op("MAXIMUM", {sum, b.Scalar(0)}), b.Scalar(6)});
}

TEST(HardSigmoid, FromItsParts) {
  for (int way = 0; way < 4; ++way) {
    SCOPED_TRACE(way);
    GraphBuilder b;
    const ValueId gate = ShiftedRelu6(b, b.Conv(b.Input({1, 5, 5, 4}), 6, 1), way);
    b.Output(b.Op("MUL", {gate, b.Scalar(1.0f / 6)}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                ElementsAre("CONV_2D + hard_sigmoid(0.166667, 0.5)"));
  }
}

TEST(HardSwish, FromItsParts) {
  for (int way = 0; way < 4; ++way) {
    for (const bool gate_first : {false, true}) {
      SCOPED_TRACE(way);
      GraphBuilder b;
      const ValueId x = b.Conv(b.Input({1, 5, 5, 4}), 6, 1);
      const ValueId gate = ShiftedRelu6(b, x, way);
      if (gate_first) {
        b.Output(b.Op("MUL", {x, b.Op("DIV", {gate, b.Scalar(6)})}));
      } else {
        b.Output(b.Op("MUL", {b.Op("MUL", {gate, x}), b.Scalar(1.0f / 6)}));
      }
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                  ElementsAre("CONV_2D + hard_swish"));
    }
  }
}

TEST(HardSwish, NotWithAnotherShift) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 5});
  const ValueId gate = b.Op("RELU6", {b.Op("ADD", {x, b.Scalar(2)})});
  b.Output(b.Op("MUL", {x, b.Op("MUL", {gate, b.Scalar(1.0f / 6)})}));
  EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops().size(), 1u);
}

// x^3 as products, or as SQUARE times x.
ValueId Cube(GraphBuilder& b, ValueId x, bool square) {
  return square ? b.Op("MUL", {b.Op("SQUARE", {x}), x}) : b.Op("MUL", {x, b.Op("MUL", {x, x})});
}

TEST(Gelu, ByTanhFromItsParts) {
  for (const bool square : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({3, 7}), 9);
    const ValueId cubic = b.Op("MUL", {Cube(b, x, square), b.Scalar(0.044715f)});
    const ValueId inner = b.Op("MUL", {b.Scalar(0.7978845608f), b.Op("ADD", {x, cubic})});
    const ValueId gate = b.Op("ADD", {b.Op("TANH", {inner}), b.Scalar(1)});
    b.Output(b.Op("MUL", {b.Op("MUL", {x, b.Scalar(0.5f)}), gate}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
                ElementsAre("FULLY_CONNECTED + gelu_tanh"));
  }
}

TEST(Gelu, NotWithAnotherFactor) {
  GraphBuilder b;
  const ValueId x = b.Input({3, 7});
  const ValueId cubic = b.Op("MUL", {Cube(b, x, false), b.Scalar(0.05f)});
  const ValueId inner = b.Op("MUL", {b.Scalar(0.7978845608f), b.Op("ADD", {x, cubic})});
  const ValueId gate = b.Op("ADD", {b.Op("TANH", {inner}), b.Scalar(1)});
  b.Output(b.Op("MUL", {b.Op("MUL", {x, b.Scalar(0.5f)}), gate}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops()) {
    EXPECT_EQ(ops.find("gelu"), std::string::npos) << ops;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
