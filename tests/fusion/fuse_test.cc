// Activations, residuals, scales and gates in the tails of layers, chains of elementwise nodes.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Property;

TEST(FuseIntoTail, AnyActivationAfterAnyLayer) {
  for (const char* activation :
       {"RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "GELU", "ELU", "ABS"}) {
    GraphBuilder b;
    const ValueId c = b.Op(activation, {b.Conv(b.Input({1, 5, 6, 3}), 7, 3)});
    const ValueId d = b.Op(activation, {b.Depthwise(c, 3)});
    b.Output(b.Op(activation, {b.Dense(d, 5)}));
    SCOPED_TRACE(activation);
    EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 2e-6f).ops().size(), 3u);
  }
}

TEST(FuseIntoTail, ResidualInEitherOrderWithItsActivation) {
  for (const bool swapped : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Input({1, 6, 5, 8});
    const ValueId c = b.Conv(x, 8, 3);
    const std::vector<ValueId> operands = swapped ? std::vector{x, c} : std::vector{c, x};
    b.Output(b.Op("ADD", operands, {{"fused_activation_function", kRelu6}}));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
    EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D + add + clamp(0, 6)"));
    EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0, 1));
  }
}

// The operator on an int8 convolution and its own input, in either order.
ValueId Int8Residual(Int8Builder& b, std::string_view op, bool swapped,
                     const Attributes& attributes = {}) {
  const ValueId x = b.In({1, 6, 5, 8}, 0.008f, -3);
  const ValueId c = b.Conv8(x, 8, 3, 0.02f, 5);
  return b.Int8Op(op, swapped ? std::vector{x, c} : std::vector{c, x}, 0.025f, 11, attributes);
}

TEST(FuseIntoTail, QuantizedResidualAndTable) {
  for (const bool swapped : {false, true}) {
    Int8Builder b;
    const ValueId sum = Int8Residual(b, "ADD", swapped, {{"fused_activation_function", kRelu}});
    b.Out(b.Int8Op("LOGISTIC", {sum}, 1.0f / 256, -128));
    EXPECT_THAT(
        ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
        ElementsAre("QUANTIZE", "CONV_2D + requantize + quantized add + lookup", "DEQUANTIZE"));
  }
}

TEST(FuseIntoTail, QuantizedBranchesButNoneBehindATable) {
  Int8Builder b;
  const ValueId x = b.In({1, 6, 5, 8}, 0.008f, -3);
  const ValueId c = b.Conv8(x, 8, 3, 0.02f, 5);
  const ValueId other = b.In({1, 6, 5, 8}, 0.01f, 4);
  const ValueId sum = b.Int8Op("ADD", {b.Int8Op("ADD", {c, x}, 0.025f, 11), other}, 0.03f, 2);
  const ValueId gate = b.Int8Op("LOGISTIC", {sum}, 1.0f / 256, -128);
  b.Out(b.Int8Op("ADD", {gate, x}, 0.02f, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "QUANTIZE",
                          "CONV_2D + requantize + quantized add + quantized add + lookup", "ADD",
                          "DEQUANTIZE"));
}

TEST(FuseIntoTail, SubtractsQuantizedResidualsFromEitherSide) {
  for (const bool swapped : {false, true}) {
    Int8Builder b;
    b.Out(Int8Residual(b, "SUB", swapped));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
                ElementsAre("QUANTIZE", "CONV_2D + requantize + quantized sub", "DEQUANTIZE"));
  }
}

TEST(FuseIntoTail, QuantizedTableAfterADenseLayer) {
  Int8Builder b;
  const ValueId dense = b.Dense8(b.In({3, 40}, 0.008f, -3), 17, 0.02f, 5);
  b.Out(b.Int8Op("TANH", {dense}, 1.0f / 128, 0));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "FULLY_CONNECTED + rescale + lookup", "DEQUANTIZE"));
}

// Dynamic range: float32 with int8 weights.
TEST(FuseIntoTail, HybridLayersTakeFloatTails) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 8});
  const ValueId weights = b.Int8Constant({8, 3, 3, 8}, 0.01f);
  const ValueId c =
      b.Op("CONV_2D", {x, weights, b.Constant({8})}, {{"stride_w", 1}, {"stride_h", 1}});
  const ValueId sum = b.Op("HARD_SWISH", {b.Op("ADD", {x, c})});
  const ValueId flat = b.Op("RESHAPE", {sum, b.Ints({1, 240})});
  const ValueId dense =
      b.Op("FULLY_CONNECTED", {flat, b.Int8Constant({5, 240}, 0.01f), b.Constant({5})});
  b.Output(b.Op("RELU", {dense}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("CONV_2D + add + hard_swish", "FULLY_CONNECTED + clamp(0, inf)"));
}

TEST(FuseIntoTail, SubtractsFromEitherSide) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 8});
  b.Output(b.Op("SUB", {x, b.Conv(x, 8, 3)}));
  b.Output(b.Op("SUB", {b.Conv(x, 8, 1), x}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("CONV_2D + reverse_sub", "CONV_2D + sub"));
}

TEST(FuseIntoTail, OfTwoLayersTheLaterTakesTheSum) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 8});
  const ValueId shortcut = b.Conv(x, 8, 1), main = b.Conv(x, 8, 3);
  b.Output(b.Op("RELU", {b.Op("ADD", {shortcut, main})}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D", "CONV_2D + add + clamp(0, inf)"));
  EXPECT_THAT(outcome.report.steps[1].host_nodes, ElementsAre(1, 2, 3));
}

TEST(FuseIntoTail, GatesAndMasksOfSeveralBatches) {
  GraphBuilder b;
  const ValueId x = b.Input({3, 4, 5, 8});
  const ValueId gate = b.Input({3, 1, 1, 8}), mask = b.Input({3, 4, 5, 1}), channel = b.Input({8}),
                map = b.Input({1, 4, 5, 8});
  ValueId v = b.Op("ADD", {b.Conv(x, 8, 3), x});
  v = b.Op("MUL", {v, gate});
  v = b.Op("MUL", {mask, v});
  v = b.Op("ADD", {channel, v});
  b.Output(b.Op("MAXIMUM", {v, map}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("CONV_2D + add + mul + mul + add + maximum"));
}

TEST(FuseIntoTail, NotWhatTheLayerWouldHaveToBroadcastTo) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 4, 5, 8});
  const ValueId gate = b.Conv(b.Input({2, 1, 1, 8}), 8, 1);
  b.Output(b.Op("MUL", {x, gate}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D", "MUL"));
}

TEST(FuseIntoTail, AnObservedValueIsABarrier) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 5, 5, 3}), 4, 3);
  b.Output(c);
  b.Output(b.Op("TANH", {c}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D", "TANH"));
}

TEST(FuseIntoTail, AValueReadTwiceStays) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 5, 5, 3}), 4, 3);
  const ValueId left = b.Op("TANH", {c}), right = b.Op("EXP", {c});
  b.Output(b.Op("ADD", {left, right}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("CONV_2D", "TANH", "EXP + add"));
}

TEST(FuseIntoTail, ChainsOfElementwiseNodesAreOneStep) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 33});
  ValueId v = b.Op("MUL", {x, b.Constant({33})});
  v = b.Op("ADD", {v, b.Scalar(0.25f)});
  v = b.Op("TANH", {v});
  b.Output(b.Op("SQUARED_DIFFERENCE", {v, x}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("MUL + add + tanh + squared_difference"));
}

TEST(FuseIntoTail, AProductWithItselfIsASquare) {
  GraphBuilder b;
  const ValueId c = b.Conv(b.Input({1, 5, 5, 3}), 4, 3);
  b.Output(b.Op("MUL", {c, c}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D + square"));
}

TEST(FuseIntoTail, PlacedOperandsKeepTheirPlace) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 4, 5, 8});
  const ValueId c = b.Conv(x, 8, 1);
  const auto parts = b.Op("SPLIT", {b.Ints({1}, {3}), c}, {{"num_splits", 2}}, 2);
  b.Output(b.Op("ADD", {b.Conv(x, 4, 3), parts[1]}));
  b.Output(b.Conv(parts[0], 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("CONV_2D", "CONV_2D + add", "CONV_2D"));
}

TEST(FoldScale, BatchNormalizationGoesIntoTheLayer) {
  GraphBuilder b;
  ValueId v = b.Conv(b.Input({2, 6, 5, 8}), 6, 3);
  v = b.Op("MUL", {v, b.Constant({6})});
  v = b.Op("ADD", {b.Constant({1, 1, 1, 6}), v}, {{"fused_activation_function", kRelu}});
  v = b.Depthwise(v, 3);
  v = b.Op("SUB", {v, b.Constant({6})});
  v = b.Op("DIV", {v, b.Constant({6}, 1, 2)});
  v = b.Dense(v, 4);
  b.Output(b.Op("SUB", {b.Constant({4}), v}, {{"fused_activation_function", kRelu6}}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(),
              ElementsAre("CONV_2D + relu", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED + relu6"));
  EXPECT_THAT(outcome.report.rewrites,
              Contains(Property(&RewriteRecord::ToString,
                                "fold MUL into the weights of CONV_2D: nodes 0, 1")));
}

TEST(FoldScale, OfInputChannels) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 8});
  b.Output(b.Conv(b.Op("MUL", {x, b.Constant({8})}), 6, 3));
  b.Output(b.Depthwise(b.Op("MUL", {b.Constant({1, 1, 8}), x}), 3));
  b.Output(b.Dense(b.Op("MUL", {x, b.Scalar(0.5f)}), 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"));
}

// A layer whose rows lie across the innermost dimension takes one factor, and none for each
// channel.
TEST(FoldScale, OfRowsOfSeveralLines) {
  for (const bool scalar : {true, false}) {
    GraphBuilder b;
    const ValueId scale = scalar ? b.Scalar(0.5f) : b.Constant({6});
    const ValueId x = b.Op("MUL", {b.Input({4, 6}), scale});
    b.Output(b.Op("FULLY_CONNECTED", {x, b.Constant({5, 12}), b.Constant({5})}));
    EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops().size(), scalar ? 1u : 2u);
  }
}

TEST(FoldScale, OfGroupedConvolutions) {
  GraphBuilder b;
  const ValueId x = b.Op("MUL", {b.Input({1, 4, 4, 6}), b.Constant({6})});
  const ValueId c =
      b.Op("CONV_2D", {x, b.Constant({4, 3, 3, 3})}, {{"stride_w", 1}, {"stride_h", 1}});
  b.Output(b.Op("MUL", {c, b.Constant({4})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("CONV_2D"));
}

TEST(FoldScale, NotBehindAnActivationNorWhereOthersRead) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 6, 5, 8});
  const ValueId c = b.Conv(x, 6, 3, {{"fused_activation_function", kRelu}});
  b.Output(b.Op("MUL", {c, b.Constant({6})}));
  const ValueId d = b.Conv(x, 6, 1);
  b.Output(d);
  b.Output(b.Op("MUL", {d, b.Constant({6})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("CONV_2D + relu + mul", "CONV_2D", "MUL"));
}

// The weights would be infinite; inputs are so small that the products are not.
TEST(FoldScale, NotBeyondTheLargestFloat) {
  GraphBuilder b;
  const ValueId x = b.Op("EXP", {b.Op("SUB", {b.Input({2, 8}), b.Scalar(46)})});
  const ValueId y = b.Op("FULLY_CONNECTED", {x, b.Constant({6, 8}, 1e20f, 2e20f), b.Constant({6})});
  b.Output(b.Op("MUL", {y, b.Constant({6}, 1e20f, 2e20f)}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre(_, "FULLY_CONNECTED + mul"));
}

// Zeros times infinite weights would be no numbers; a sum that its bias keeps small would be none.
TEST(FoldScale, NotBeyondTheLargestFloatOfAnInputOrABias) {
  GraphBuilder zeros;
  const ValueId zero =
      zeros.Op("MINIMUM", {zeros.Op("ABS", {zeros.Input({2, 8})}), zeros.Scalar(0)});
  zeros.Output(
      zeros.Op("FULLY_CONNECTED", {zeros.Op("MUL", {zero, zeros.Constant({8}, 1e20f, 2e20f)}),
                                   zeros.Constant({6, 8}, 1e20f, 2e20f), zeros.Constant({6})}));
  EXPECT_THAT(ExpectSameFused(zeros.graph(), 1e-5f).ops(), Contains("FULLY_CONNECTED"));
  GraphBuilder after;
  const ValueId x = after.Op("MINIMUM", {after.Input({2, 1}), after.Scalar(-3)});
  const ValueId y = after.Op("FULLY_CONNECTED", {x, after.Constant({6, 1}, 0.79e38f, 0.8e38f),
                                                 after.Constant({6}, 2.9e38f, 3e38f)});
  after.Output(after.Op("ADD", {y, after.Constant({6}, 0.7e38f, 0.8e38f)}));
  ExpectSameFused(after.graph(), 1e-5f);
}

// x * gate before a 1x1 convolution of `filters`, and a residual behind it.
GraphBuilder SqueezeExcite(int batch, int filters) {
  GraphBuilder b;
  const ValueId x = b.Op("TANH", {b.Input({batch, 8, 9, 6})});
  const ValueId gate = b.Op("LOGISTIC", {b.Conv(b.Input({batch, 1, 1, 4}), 6, 1)});
  b.Output(x);
  const ValueId c = b.Conv(b.Op("MUL", {x, gate}), filters, 1);
  b.Output(b.Op("ADD", {c, b.Input({batch, 8, 9, filters})}));
  return b;
}

TEST(GateIntoWeights, WhereWeightsAreFewerThanPixels) {
  const GraphBuilder b = SqueezeExcite(1, 5);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("TANH", "CONV_2D + logistic", "MUL", "FULLY_CONNECTED + add"));
}

TEST(GateIntoWeights, NotOfSeveralImagesNorOfManyFilters) {
  for (const auto& [batch, filters] : {std::pair(2, 5), std::pair(1, 40)}) {
    const GraphBuilder b = SqueezeExcite(batch, filters);
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
                ElementsAre("TANH", "CONV_2D + logistic", "MUL", "CONV_2D + add"));
  }
}

TEST(GateIntoWeights, OfProductsOfSinglePixelsByFloatsAlone) {
  struct Case {
    Shape filters;
    Attributes strides{};
    bool padded = false, floats = true;
  };
  for (const Case& c :
       {Case{{5, 1, 3, 6}}, Case{{5, 3, 1, 6}}, Case{{6, 1, 1, 3}},
        Case{{5, 1, 1, 6}, {{"stride_h", 2}}}, Case{{5, 1, 1, 6}, {{"stride_w", 2}}},
        Case{{5, 1, 1, 6}, {}, true}, Case{{5, 1, 1, 6}, {}, false, false}}) {
    GraphBuilder b;
    const ValueId gate = b.Op("LOGISTIC", {b.Input({1, 1, 1, 6})});
    ValueId v = b.Op("MUL", {b.Op("TANH", {b.Input({1, 24, 25, 6})}), gate});
    if (c.padded) v = b.Op("PAD", {v, b.Ints({4, 2}, {0, 0, 1, 0, 0, 1, 0, 0})});
    Attributes attributes = {{"stride_h", 1}, {"stride_w", 1}};
    attributes.insert(attributes.end(), c.strides.begin(), c.strides.end());
    const ValueId filters = c.floats ? b.Constant(c.filters) : b.Int8Constant(c.filters, 0.01f);
    b.Output(b.Op("CONV_2D", {v, filters}, attributes));
    for (const std::string& op : ExpectSameFused(b.graph(), 1e-5f).ops()) {
      EXPECT_FALSE(op.starts_with("FULLY_CONNECTED")) << c.filters.ToString();
    }
  }
}

// The input of a convolution that is its residual too: what made it must stay.
TEST(OwnInputAsResidual, OfAGatedAScaledAndAPaddedConvolution) {
  const auto outcome = [](auto&& make) {
    GraphBuilder b;
    const ValueId x = b.Op("TANH", {b.Input({1, 8, 9, 6})});
    b.Output(x);
    const ValueId v = make(b, x);
    b.Output(b.Op("ADD", {b.Conv(v, 6, 3), v}));
    return ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops();
  };
  EXPECT_THAT(outcome([](GraphBuilder& b, ValueId x) {
                return b.Op("MUL", {x, b.Constant({6})});
              }),
              ElementsAre("TANH", "MUL", "CONV_2D + add"));
  EXPECT_THAT(outcome([](GraphBuilder& b, ValueId x) {
                return b.Op("PAD", {x, b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})});
              }),
              ElementsAre("TANH", "PAD", "CONV_2D + add"));
  GraphBuilder b;
  const ValueId x = b.Op("TANH", {b.Input({1, 8, 9, 6})});
  b.Output(x);
  const ValueId gated = b.Op("MUL", {x, b.Op("LOGISTIC", {b.Input({1, 1, 1, 6})})});
  b.Output(b.Op("ADD", {b.Conv(gated, 6, 1), gated}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("TANH", "LOGISTIC", "MUL", "CONV_2D + add"));
}

TEST(Identity, ProductsByOneAndSumsWithZeroGo) {
  GraphBuilder b;
  ValueId v = b.Op("TANH", {b.Input({3, 4})});
  v = b.Op("MUL", {v, b.Scalar(1)});
  v = b.Op("ADD", {b.Scalar(0), v});
  v = b.Op("SUB", {v, b.Scalar(0)});
  b.Output(b.Op("DIV", {v, b.Scalar(1)}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("TANH"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
