// RESHAPEs between a layer and what its tail takes.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

// As the PyTorch converter writes a feed-forward with its residual.
TEST(SinkReshape, WhatFollowsALayerFusesIntoIt) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 3, 8});
  ValueId v = b.Dense(b.Op("RESHAPE", {x, b.Ints({6, 8})}), 8);
  v = b.Op("RESHAPE", {v, b.Ints({2, 3, 8})});
  v = b.Op("TANH", {b.Op("MUL", {v, b.Constant({8})})});
  b.Output(b.Op("ADD", {x, v}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 2e-6f);
  EXPECT_THAT(outcome.ops(), ElementsAre("FULLY_CONNECTED + tanh + add"));
}

TEST(SinkReshape, QuantizedResiduals) {
  Int8Builder b;
  const ValueId x = b.In({1, 6, 8});
  ValueId v = b.Dense8(b.Int8Op("RESHAPE", {x, b.Ints({6, 8})}, 0.03f, -3), 8, 0.04f, 5);
  v = b.Int8Op("RESHAPE", {v, b.Ints({1, 6, 8})}, 0.04f, 5);
  b.Out(b.Int8Op("ADD", {v, x}, 0.05f, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "FULLY_CONNECTED + rescale + quantized add", "DEQUANTIZE"));
}

// What a recurrent cell that was unrolled has.
TEST(SinkReshape, OperandsWithMoreDimensionsOfSizeOne) {
  GraphBuilder b;
  const ValueId v = b.Dense(b.Input({1, 8}), 8);
  b.Output(b.Op("ADD", {b.Input({1, 1, 1, 8}), v}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("FULLY_CONNECTED + add"));
}

TEST(SinkReshape, NotWhereAnOperandRepeatsAlongPartOfADimension) {
  GraphBuilder b;
  ValueId v = b.Dense(b.Input({6, 8}), 8);
  v = b.Op("RESHAPE", {v, b.Ints({6, 2, 4})});
  b.Output(b.Op("ADD", {v, b.Op("NEG", {b.Input({6, 2, 1})})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("FULLY_CONNECTED", "NEG", "ADD"));
}

// Both operands come from layers: one of them takes the sum, and it stays there.
TEST(SinkReshape, EndsBetweenTwoLayers) {
  GraphBuilder b;
  const ValueId x = b.Input({6, 8});
  const ValueId first = b.Op("RESHAPE", {b.Dense(x, 8), b.Ints({2, 3, 8})});
  const ValueId second = b.Op("RESHAPE", {b.Dense(x, 8), b.Ints({2, 3, 8})});
  b.Output(b.Op("ADD", {first, second}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("FULLY_CONNECTED", "FULLY_CONNECTED + add"));
}

TEST(SinkReshape, ComputesTheSameForRandomShapesAndOperands) {
  const std::vector<std::vector<int32_t>> shapes = {{24, 10},      {2, 12, 10}, {2, 3, 4, 10},
                                                    {24, 2, 5},    {240},       {8, 30},
                                                    {4, 6, 1, 10}, {1, 24, 10}, {2, 3, 8, 5}};
  for (int seed = 1; seed <= 150; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    ValueId v = b.Dense(b.Input({24, 7}), 10);
    for (int i = 0; i < 3; ++i) {
      v = b.Op("RESHAPE", {v, b.Ints(shapes[b.random().Int(0, shapes.size() - 1)])});
      const Shape& shape = b.shape(v);
      Shape operand;
      for (int d = b.random().Chance(0.2) ? 1 : 0; d < shape.rank(); ++d) {
        operand.push_back(b.random().Chance(0.5) ? shape[d] : 1);
      }
      const ValueId other = b.random().Chance(0.5) ? b.Input(operand) : b.Constant(operand);
      v = b.random().Chance(0.5) ? b.Op("MUL", {v, other}) : b.Op("SUB", {other, v});
    }
    b.Output(b.Op("ABS", {v}));
    ExpectSameFused(b.graph(), 1e-5f);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
