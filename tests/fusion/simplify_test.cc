// What goes away: constants, identities, reshapes in a row, dead nodes.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Property;

// What fails says so in the run.
TEST(FoldConstants, NotWhatFails) {
  GraphBuilder b;
  const ValueId row = b.Op("GATHER", {b.Constant({3, 4}), b.Ints({1}, {5})});
  b.Output(b.Op("ADD", {row, b.Input({1, 4})}));
  EXPECT_FALSE(RunGraph(b.graph(), Fused()).status.ok());
}

TEST(FoldConstants, MovedWeightsBecomeWeights) {
  GraphBuilder b;
  const ValueId weights = b.Op("TRANSPOSE", {b.Constant({6, 4}), b.Ints({1, 0})});
  const ValueId shaped = b.Op("RESHAPE", {weights, b.Ints({4, 1, 1, 6})});
  b.Output(b.Op("CONV_2D", {b.Input({1, 3, 3, 6}), shaped, b.Constant({4})},
                {{"stride_w", 1}, {"stride_h", 1}}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-6f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D"));
  EXPECT_THAT(outcome.report.rewrites,
              Contains(Property(&RewriteRecord::ToString, "fold constant TRANSPOSE: node 0")));
}

// float16 weights, as converters leave them.
ValueId Halves(GraphBuilder& b, const Shape& shape) {
  std::vector<uint16_t> halves(static_cast<size_t>(shape.elements()));
  for (uint16_t& half : halves) half = static_cast<uint16_t>(b.random().Int(0x2C00, 0x3C00));
  return b.graph().AddConstant({.type = DataType::kFloat16, .shape = shape},
                               std::as_bytes(std::span(halves)), "w");
}

TEST(FoldConstants, HalvesBecomeWeights) {
  GraphBuilder b;
  const ValueId weights = Halves(b, {5, 3, 3, 4});
  b.Output(b.Op("CONV_2D", {b.Input({1, 6, 6, 4}), b.Op("DEQUANTIZE", {weights}), b.Constant({5})},
                {{"stride_w", 1}, {"stride_h", 1}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("CONV_2D"));
}

TEST(FoldConstants, LeavesObservedAndGrowingOnes) {
  GraphBuilder b;
  b.Output(b.Op("RESHAPE", {b.Constant({6, 4}), b.Ints({24})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("RESHAPE"));

  GraphBuilder large;
  const ValueId tiled = large.Op("TILE", {large.Constant({1, 64}), large.Ints({64, 1})});
  const ValueId x = large.Input({64, 64});
  large.Output(large.Op("BATCH_MATMUL", {x, tiled}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(large.graph(), 0).ops(),
              ElementsAre("TILE", "BATCH_MATMUL"));
}

TEST(KeepWeightsSmall, OfOneRowByIntegersOrHalves) {
  for (const DataType type : {DataType::kInt8, DataType::kFloat16}) {
    GraphBuilder b;
    const ValueId small =
        type == DataType::kInt8 ? b.Int8Constant({512, 512}, 0.01f) : Halves(b, {512, 512});
    const ValueId y = b.Op("FULLY_CONNECTED",
                           {b.Input({1, 512}), b.Op("DEQUANTIZE", {small}), b.Constant({512})});
    b.Output(b.Op("TANH", {y}));
    const Outcome outcome = ExpectSameFused(b.graph(), 1e-4f);
    EXPECT_THAT(outcome.ops(), ElementsAre("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED + tanh"));
    EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0, 1, 2));
  }
}

TEST(KeepWeightsSmall, OfEmbeddings) {
  for (const int32_t zero_point : {0, 1}) {
    GraphBuilder b;
    const ValueId small = b.Int8Constant({512, 512}, 0.01f);
    b.graph().value(small).info.quantization.zero_points = {zero_point};
    const ValueId rows =
        b.Op("EMBEDDING_LOOKUP", {b.Ints({3, 511, 0}), b.Op("DEQUANTIZE", {small})});
    b.Output(b.Op("MUL", {rows, b.Input({3, 512})}));
    const Outcome outcome = ExpectSameFused(b.graph(), 0);
    const bool kept = std::ranges::any_of(outcome.report.rewrites, [](const RewriteRecord& r) {
      return r.what == "keep weights small";
    });
    EXPECT_EQ(kept, zero_point == 0);
  }
}

// Several rows, few weights, weights that the run dequantizes, and those with a zero point.
TEST(KeepWeightsSmall, NotOfOthers) {
  struct Case {
    int32_t rows, units, zero_point;
    bool constant;
  };
  for (const Case& c : {Case{2, 512, 0, true}, Case{1, 511, 0, true}, Case{1, 512, 1, true},
                        Case{1, 512, 0, false}}) {
    GraphBuilder b;
    const ValueId weights = c.constant ? b.Int8Constant({c.units, 512}, 0.01f)
                                       : b.Int8Op("QUANTIZE", {b.Input({c.units, 512})}, 0.01f, 0);
    if (c.constant) b.graph().value(weights).info.quantization.zero_points = {c.zero_point};
    b.Output(b.Op("FULLY_CONNECTED", {b.Input({c.rows, 512}), b.Op("DEQUANTIZE", {weights})}));
    for (const std::string& ops : ExpectSameFused(b.graph(), 1e-4f).ops()) {
      EXPECT_EQ(ops.find("WEIGHT_ONLY"), std::string::npos) << ops;
    }
  }
}

// What the floats are needed for besides still gets them.
TEST(KeepWeightsSmall, WhereOthersReadTheFloats) {
  GraphBuilder b;
  const ValueId weights = b.Op("DEQUANTIZE", {b.Int8Constant({512, 512}, 0.01f)});
  b.Output(b.Op("FULLY_CONNECTED", {b.Input({1, 512}), weights}));
  b.Output(b.Op("FULLY_CONNECTED", {b.Input({3, 512}), weights}));
  EXPECT_THAT(ExpectSameFused(b.graph(), 1e-4f).ops(),
              ElementsAre("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED", "FULLY_CONNECTED"));
}

TEST(KeepWeightsSmall, WhereTheFloatsAreGiven) {
  GraphBuilder b;
  const ValueId weights = b.Op("DEQUANTIZE", {b.Int8Constant({512, 512}, 0.01f)});
  b.Output(b.Op("FULLY_CONNECTED", {b.Input({1, 512}), weights}));
  b.Output(weights);
  ExpectSameFused(b.graph(), 1e-4f);
}

// A layer of constants, without a bias.
TEST(FoldConstants, WithoutOptionalOperands) {
  GraphBuilder b;
  const ValueId y = b.Op("FULLY_CONNECTED", {b.Constant({2, 4}), b.Constant({3, 4}), kNone});
  b.Output(b.Op("ADD", {b.Input({2, 3}), y}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(), ElementsAre("ADD"));
}

TEST(DeadNodes, GoWithWhatOnlyTheyNeed) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 8});
  b.Dense(b.Dense(x, 4), 3);
  b.Output(b.Dense(x, 2));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("FULLY_CONNECTED"));
}

TEST(Identity, PadSliceTransposeReshapeOfNothingGo) {
  GraphBuilder b;
  ValueId v = b.Conv(b.Input({1, 1, 6, 4}), 4, 3);
  v = b.Op("PAD", {v, b.Ints({4, 2}, {0, 0, 0, 0, 0, 0, 0, 0})});
  v = b.Op("SLICE", {v, b.Ints({0, 0, 0, 0}), b.Ints({1, 1, 6, 4})});
  v = b.Op("TRANSPOSE", {v, b.Ints({1, 0, 2, 3})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 1, 6, 4})});
  b.Output(b.Conv(v, 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("CONV_2D", "CONV_2D"));
}

TEST(Identity, EachGoesByItself) {
  using Make = ValueId (*)(GraphBuilder&, ValueId);
  static const auto zeros = [](GraphBuilder& b) { return b.Ints({3, 2}, {0, 0, 0, 0, 0, 0}); };
  static const auto softmax = [](GraphBuilder& b, ValueId v) {
    return b.Op("SOFTMAX", {v}, {{"beta", 1}});
  };
  const std::pair<const char*, Make> kIdentities[] = {
      {"PAD",
       [](auto& b, ValueId v) {
         return b.Op("PAD", {v, zeros(b)});
       }},
      {"PADV2",
       [](auto& b, ValueId v) {
         return b.Op("PADV2", {v, zeros(b), b.Scalar(1)});
       }},
      {"MIRROR_PAD",
       [](auto& b, ValueId v) {
         return b.Op("MIRROR_PAD", {v, zeros(b)});
       }},
      {"SLICE",
       [](auto& b, ValueId v) {
         return b.Op("SLICE", {v, b.Ints({0, 0, 0}), b.Ints({-1, 3, 5})});
       }},
      {"TRANSPOSE",
       [](auto& b, ValueId v) {
         return b.Op("TRANSPOSE", {v, b.Ints({0, 1, 2})});
       }},
      {"RESHAPE",
       [](auto& b, ValueId v) {
         return b.Op("RESHAPE", {v, b.Ints({2, -1, 5})});
       }},
      {"CONCATENATION",
       [](auto& b, ValueId v) {
         return b.Op("CONCATENATION", {v}, {{"axis", 1}});
       }},
      {"MUL",
       [](auto& b, ValueId v) {
         return b.Op("MUL", {v, b.Scalar(1)});
       }},
      {"MUL from the left",
       [](auto& b, ValueId v) {
         return b.Op("MUL", {b.Scalar(1), v});
       }},
      {"DIV",
       [](auto& b, ValueId v) {
         return b.Op("DIV", {v, b.Scalar(1)});
       }},
      {"ADD",
       [](auto& b, ValueId v) {
         return b.Op("ADD", {v, b.Scalar(0)});
       }},
      {"ADD from the left",
       [](auto& b, ValueId v) {
         return b.Op("ADD", {b.Scalar(0), v});
       }},
      {"SUB",
       [](auto& b, ValueId v) {
         return b.Op("SUB", {v, b.Scalar(0)});
       }},
  };
  for (const auto& [what, make] : kIdentities) {
    SCOPED_TRACE(what);
    GraphBuilder b;
    b.Output(softmax(b, make(b, softmax(b, b.Input({2, 3, 5})))));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
                ElementsAre("SOFTMAX", "SOFTMAX"));
  }
}

TEST(Identity, ConcatenationOfOneGoes) {
  GraphBuilder b;
  b.Output(b.Op("CONCATENATION", {b.Conv(b.Input({1, 4, 4, 3}), 4, 1)}, {{"axis", 3}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(), ElementsAre("CONV_2D"));
}

TEST(Identity, TransposeOfASquareStays) {
  GraphBuilder b;
  const ValueId v = b.Dense(b.Input({6, 8}), 6);
  b.Output(b.Dense(b.Op("TRANSPOSE", {v, b.Ints({1, 0})}), 4));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("FULLY_CONNECTED", "TRANSPOSE", "FULLY_CONNECTED"));
}

TEST(Identity, AtTheOutputItsMakerWritesIt) {
  GraphBuilder b;
  const ValueId v = b.Dense(b.Input({6, 8}), 6);
  b.Output(b.Op("RESHAPE", {v, b.Ints({6, 6})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("FULLY_CONNECTED"));
}

TEST(Identity, FromInputToOutputStays) {
  GraphBuilder b;
  b.Output(b.Op("RESHAPE", {b.Input({6, 6}), b.Ints({6, 6})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("RESHAPE"));
}

TEST(MergeReshapes, TheLastOneRemains) {
  GraphBuilder b;
  ValueId v = b.Op("RESHAPE", {b.Input({4, 6}), b.Ints({2, 12})});
  v = b.Op("EXPAND_DIMS", {v, b.Ints({0})});
  b.Output(b.Op("RESHAPE", {v, b.Ints({8, 3})}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_THAT(outcome.ops(), ElementsAre("RESHAPE"));
  EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0, 1, 2));
}

TEST(MergeReshapes, BetweenLayersNoneRemains) {
  GraphBuilder b;
  ValueId v = b.Dense(b.Input({4, 6}), 6);
  v = b.Op("EXPAND_DIMS", {v, b.Ints({0})});
  v = b.Op("SQUEEZE", {v});
  v = b.Op("RESHAPE", {v, b.Ints({1, 4, 6})});
  b.Output(b.Dense(v, 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("FULLY_CONNECTED", "FULLY_CONNECTED"));
}

TEST(MergeReshapes, WhatOthersReadStays) {
  GraphBuilder b;
  const ValueId first = b.Op("RESHAPE", {b.Input({4, 6}), b.Ints({2, 12})});
  b.Output(b.Op("RESHAPE", {first, b.Ints({24})}));
  b.Output(b.Dense(first, 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("RESHAPE", "FULLY_CONNECTED"));
}

// Filters [O, 3, 3, 1] for any number of input channels.
TEST(RegroupConvolution, OfSingleChannelsBecomesDepthwise) {
  for (const int multiplier : {1, 2}) {
    GraphBuilder b;
    const ValueId weights = b.Constant({6 * multiplier, 3, 3, 1});
    const ValueId bias = b.Constant({6 * multiplier});
    b.Output(b.Op("CONV_2D", {b.Input({2, 9, 8, 6}), weights, bias},
                  {{"stride_w", 2}, {"stride_h", 1}, {"fused_activation_function", kRelu}}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
                ElementsAre("DEPTHWISE_CONV_2D + relu"));
  }
}

TEST(RegroupConvolution, OfSingleChannelsInIntegers) {
  Int8Builder b;
  const ValueId x = b.In({2, 9, 8, 6});
  const ValueId weights = b.Int8Constant({12, 3, 3, 1}, 0.01f);
  b.Out(b.Int8Op("CONV_2D", {x, weights}, 0.05f, 4, {{"stride_w", 1}, {"stride_h", 2}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "DEPTHWISE_CONV_2D", "DEQUANTIZE"));
}

// Scales of the filters differ: both operators quantize float32 channels in one way.
TEST(RegroupConvolution, OfSingleChannelsWithIntegerWeights) {
  GraphBuilder b;
  const auto weights = [&](const Shape& shape, int axis) {
    const ValueId v = b.Int8Constant(shape, 0.01f);
    Quantization& q = b.graph().value(v).info.quantization;
    q.axis = axis;
    q.scales = {0.010f, 0.011f, 0.012f, 0.013f, 0.014f, 0.015f};
    q.zero_points = ChannelValues<int32_t>::Repeated(6, 0);
    return v;
  };
  const ValueId x = b.Input({2, 9, 8, 6});
  b.Output(b.Op("CONV_2D", {x, weights({6, 3, 3, 1}, 0), b.Constant({6})},
                {{"stride_w", 1}, {"stride_h", 1}}));
  const ValueId one = b.Input({2, 9, 8, 1});
  b.Output(b.Op("DEPTHWISE_CONV_2D", {one, weights({1, 3, 3, 6}, 3), b.Constant({6})},
                {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 6}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("DEPTHWISE_CONV_2D", "CONV_2D"));
}

// Rows are quantized asymmetrically, which a convolution does for several scales only.
TEST(RegroupConvolution, NotOfOneChannelWithIntegerWeightsOfOneScale) {
  GraphBuilder b;
  b.Output(b.Op("DEPTHWISE_CONV_2D",
                {b.Input({1, 9, 8, 1}), b.Int8Constant({1, 4, 3, 1}, 0.01f), b.Constant({1})},
                {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 1}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("DEPTHWISE_CONV_2D"));
}

TEST(RegroupConvolution, DepthwiseOfOneChannelBecomesRegular) {
  GraphBuilder b;
  b.Output(b.Op("DEPTHWISE_CONV_2D",
                {b.Input({1, 9, 8, 1}), b.Constant({1, 4, 3, 8}), b.Constant({8})},
                {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 8}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("CONV_2D"));
  Int8Builder bytes;
  const ValueId weights = bytes.Int8Constant({1, 4, 3, 8}, 0.01f);
  bytes.Out(bytes.Int8Op("DEPTHWISE_CONV_2D", {bytes.In({1, 9, 8, 1}), weights}, 0.05f, 4,
                         {{"stride_w", 1}, {"stride_h", 1}, {"depth_multiplier", 8}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(bytes.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "CONV_2D", "DEQUANTIZE"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
