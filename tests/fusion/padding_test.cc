// PAD in the window of the layer behind it, and each reason why it stays a step of its own.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Property;

const Attributes kStride2 = {{"stride_w", 2}, {"stride_h", 2}, {"padding", kValid}};
const Attributes kPool3 = {{"filter_width", 3},
                           {"filter_height", 3},
                           {"stride_w", 2},
                           {"stride_h", 2},
                           {"padding", kValid}};

TEST(FoldPadding, IntoAConvolution) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 9, 9, 3});
  const ValueId padded = b.Op("PAD", {x, b.Ints({4, 2}, {0, 0, 1, 2, 3, 0, 0, 0})});
  b.Output(b.Conv(padded, 5, 3, kStride2));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("CONV_2D"));
  EXPECT_THAT(outcome.report.steps[0].host_nodes, ElementsAre(0, 1));
  EXPECT_THAT(
      outcome.report.rewrites,
      ElementsAre(Property(&RewriteRecord::ToString, "fold padding into CONV_2D: nodes 0, 1")));
}

TEST(FoldPadding, TwiceIntoADepthwiseConvolutionWithItsOwn) {
  GraphBuilder b;
  ValueId v = b.Input({2, 7, 9, 6});
  for (int i = 0; i < 2; ++i) {
    v = b.Op("PAD", {v, b.Ints({4, 2}, {0, 0, 1, i, 0, 2, 0, 0})});
  }
  b.Output(b.Depthwise(v, 3, {{"padding", kSame}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("DEPTHWISE_CONV_2D"));
}

TEST(FoldPadding, ForEachOfSeveralReaders) {
  GraphBuilder b;
  const ValueId padded =
      b.Op("PAD", {b.Input({1, 9, 9, 3}), b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})});
  b.Output(b.Conv(padded, 5, 3, {{"padding", kValid}}));
  b.Output(b.Conv(padded, 2, 1, {{"padding", kValid}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("CONV_2D", "CONV_2D"));
}

TEST(FoldPadding, NotOfChannelsNorWithAValue) {
  GraphBuilder b;
  const ValueId channels =
      b.Op("PAD", {b.Input({1, 5, 5, 3}), b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 1})});
  b.Output(b.Conv(channels, 4, 3));
  const ValueId ones =
      b.Op("PADV2", {b.Input({1, 5, 5, 3}), b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}), b.Scalar(1)});
  b.Output(b.Conv(ones, 4, 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("PAD", "CONV_2D", "PADV2", "CONV_2D"));
}

TEST(FoldPadding, OfZeroPointsIntoQuantizedLayers) {
  Int8Builder b;
  const ValueId padding = b.Ints({4, 2}, {0, 0, 1, 2, 3, 0, 0, 0});
  ValueId v = b.In({2, 7, 9, 6});
  v = b.Conv8(b.Int8Op("PAD", {v, padding}, 0.03f, -3), 5, 3, 0.04f, 9, kStride2);
  v = b.Depthwise8(b.Int8Op("PAD", {v, padding}, 0.04f, 9), 3, 0.05f, 2);
  b.Out(v);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "CONV_2D", "DEPTHWISE_CONV_2D", "DEQUANTIZE"));
}

TEST(FoldPadding, IntoAQuantizedMaximum) {
  for (const auto& [zero_point, activation] :
       {std::pair(-128, 0.0), std::pair(7, kRelu), std::pair(7, 0.0)}) {
    Int8Builder b;
    const ValueId c = b.Conv8(b.In({1, 9, 9, 3}), 4, 1, 0.02f, zero_point,
                              {{"fused_activation_function", activation}});
    const ValueId padded =
        b.Int8Op("PAD", {c, b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})}, 0.02f, zero_point);
    b.Out(b.Int8Op("MAX_POOL_2D", {padded}, 0.02f, zero_point, kPool3));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 0).ops();
    const bool may_be_negative = zero_point != -128 && activation == 0;
    EXPECT_EQ(ops.size(), may_be_negative ? 5u : 4u);
  }
}

// Codes of uint8 stand for nothing below zero where that is code 0.
TEST(FoldPadding, IntoAMaximumOfUnsignedCodes) {
  for (const int32_t zero_point : {0, 5}) {
    Int8Builder b;
    const TensorInfo codes{.type = DataType::kUInt8,
                           .quantization = {.scales = {0.02f}, .zero_points = {zero_point}}};
    const auto op = [&](const char* name, std::vector<ValueId> inputs, const Attributes& a = {}) {
      return b.Op(name, inputs, a, 1, codes)[0];
    };
    const ValueId x = op("QUANTIZE", {b.Input({1, 9, 9, 3})});
    const ValueId padded = op("PAD", {x, b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})});
    b.Out(op("MAX_POOL_2D", {padded}, kPool3));
    EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 0).ops().size(), zero_point == 0 ? 3u : 4u);
  }
}

TEST(FoldPadding, IntoAMaximumOfWhatIsNotNegative) {
  for (const bool relu : {false, true}) {
    GraphBuilder b;
    const ValueId c =
        b.Conv(b.Input({1, 9, 9, 3}), 4, 1, {{"fused_activation_function", relu ? kRelu : 0}});
    const ValueId padded = b.Op("PAD", {c, b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})});
    b.Output(b.Op("MAX_POOL_2D", {padded}, kPool3));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 0).ops();
    if (relu) {
      EXPECT_THAT(ops, ElementsAre("CONV_2D + relu", "MAX_POOL_2D"));
    } else {
      EXPECT_THAT(ops, ElementsAre("CONV_2D", "PAD", "MAX_POOL_2D"));
    }
  }
}

TEST(FoldPadding, NotIntoAMaximumOverPaddingAlone) {
  GraphBuilder b;
  const ValueId c = b.Op("RELU", {b.Input({1, 6, 6, 3})});
  const ValueId padded = b.Op("PAD", {c, b.Ints({4, 2}, {0, 0, 4, 4, 0, 0, 0, 0})});
  b.Output(b.Op("MAX_POOL_2D", {padded},
                {{"filter_width", 2},
                 {"filter_height", 2},
                 {"stride_w", 2},
                 {"stride_h", 2},
                 {"padding", kValid}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("RELU", "PAD", "MAX_POOL_2D"));
}

TEST(FoldPadding, AnObservedPadIsComputed) {
  GraphBuilder b;
  const ValueId padded =
      b.Op("PAD", {b.Input({1, 5, 5, 3}), b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})});
  b.Output(padded);
  b.Output(b.Conv(padded, 4, 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("PAD", "CONV_2D"));
}

// One row more on each side of the images.
ValueId PaddedByOne(GraphBuilder& b, ValueId x) {
  return b.Op("PAD", {x, b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})});
}

bool HasPad(const Outcome& outcome) {
  return std::ranges::any_of(outcome.ops(),
                             [](const std::string& op) { return op.starts_with("PAD"); });
}

TEST(FoldPadding, NotOfImagesNorOfChannelsAtEitherEnd) {
  for (const int end : {0, 1, 6, 7}) {
    GraphBuilder b;
    std::vector<int32_t> padding = {0, 0, 1, 1, 1, 1, 0, 0};
    padding[end] = 1;
    b.Output(b.Conv(b.Op("PAD", {b.Input({1, 5, 5, 3}), b.Ints({4, 2}, padding)}), 4, 3));
    SCOPED_TRACE(end);
    EXPECT_TRUE(HasPad(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
  }
}

TEST(FoldPadding, OfImagesOfFourDimensionsOnly) {
  GraphBuilder b;
  const ValueId padded = b.Op("PAD", {b.Input({5, 3}), b.Ints({2, 2}, {1, 1, 0, 0})});
  b.Output(b.Dense(padded, 4));
  EXPECT_TRUE(HasPad(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

TEST(FoldPadding, WithAValueThatIsZeroAndKnown) {
  for (const float value : {0.0f, 0.5f}) {
    GraphBuilder b;
    const ValueId padded =
        b.Op("PADV2",
             {b.Input({1, 5, 5, 3}), b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}), b.Scalar(value)});
    b.Output(b.Conv(padded, 4, 3));
    EXPECT_EQ(HasPad(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)), value != 0);
  }
  GraphBuilder b;
  const ValueId padded = b.Op(
      "PADV2", {b.Input({1, 5, 5, 3}), b.Ints({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}), b.Input(Shape())});
  b.Output(b.Conv(padded, 4, 3));
  EXPECT_TRUE(HasPad(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

// A maximum would leave out what a PAD before it counts as zeros. `made` gives a value of which
// some windows at the border hold nothing above zero.
struct Maximum {
  const char* name;
  ValueId (*made)(GraphBuilder& b, ValueId x);
  bool folds;
};

const Maximum kMaxima[] = {
    {"an input", [](GraphBuilder&, ValueId x) { return x; }, false},
    {"a layer", [](GraphBuilder& b, ValueId x) { return b.Conv(x, 4, 1); }, false},
    {"RELU", [](GraphBuilder& b, ValueId x) { return b.Op("RELU", {x}); }, true},
    {"RELU6", [](GraphBuilder& b, ValueId x) { return b.Op("RELU6", {x}); }, true},
    {"RELU_N1_TO_1", [](GraphBuilder& b, ValueId x) { return b.Op("RELU_N1_TO_1", {x}); }, false},
    {"TANH", [](GraphBuilder& b, ValueId x) { return b.Op("TANH", {x}); }, false},
    {"a layer with RELU6",
     [](GraphBuilder& b, ValueId x) {
       return b.Conv(x, 4, 1, {{"fused_activation_function", kRelu6}});
     },
     true},
    {"a layer with RELU_N1_TO_1",
     [](GraphBuilder& b, ValueId x) {
       return b.Conv(x, 4, 1, {{"fused_activation_function", kReluN1To1}});
     },
     false},
    {"a sum with RELU",
     [](GraphBuilder& b, ValueId x) {
       return b.Op("ADD", {x, b.Conv(x, 3, 1)}, {{"fused_activation_function", kRelu}});
     },
     true},
    {"a sum with RELU_N1_TO_1",
     [](GraphBuilder& b, ValueId x) {
       return b.Op("ADD", {x, b.Conv(x, 3, 1)}, {{"fused_activation_function", kReluN1To1}});
     },
     false},
    {"what HARD_SWISH makes of a layer",
     [](GraphBuilder& b, ValueId x) { return b.Op("HARD_SWISH", {b.Conv(x, 3, 1)}); }, false},
};

TEST(FoldPadding, IntoAMaximumOfWhatEachOperatorMakes) {
  for (const Maximum& maximum : kMaxima) {
    GraphBuilder b;
    const ValueId made = maximum.made(b, b.Input({1, 9, 9, 3}));
    b.Output(b.Op("MAX_POOL_2D", {PaddedByOne(b, made)}, kPool3));
    SCOPED_TRACE(maximum.name);
    EXPECT_EQ(HasPad(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)), !maximum.folds);
  }
}

TEST(FoldPadding, NotIntoAMaximumOverColumnsOfPaddingAlone) {
  GraphBuilder b;
  const ValueId c = b.Op("RELU", {b.Input({1, 6, 6, 3})});
  const ValueId padded = b.Op("PAD", {c, b.Ints({4, 2}, {0, 0, 0, 0, 4, 4, 0, 0})});
  b.Output(b.Op("MAX_POOL_2D", {padded}, kPool3));
  EXPECT_TRUE(HasPad(ExpectFusedEqualsUnfused(b.graph(), 0)));
}

TEST(FoldPadding, NotIntoAnAverage) {
  GraphBuilder b;
  const ValueId c = b.Op("RELU", {b.Input({1, 9, 9, 3})});
  b.Output(b.Op("AVERAGE_POOL_2D", {PaddedByOne(b, c)}, kPool3));
  EXPECT_TRUE(HasPad(ExpectFusedEqualsUnfused(b.graph(), 1e-6f)));
}

TEST(FoldPadding, OfOneReaderLeavesItToTheOthers) {
  GraphBuilder b;
  const ValueId padded = PaddedByOne(b, b.Input({1, 9, 9, 3}));
  b.Output(b.Conv(padded, 4, 3));
  b.Output(b.Op("AVERAGE_POOL_2D", {padded}, kPool3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ::testing::UnorderedElementsAre("PAD", "CONV_2D", "AVERAGE_POOL_2D"));
}

// Rows of one image, padded before and behind, as a one-dimensional network writes it.
TEST(FoldPadding, ThroughAReshapeByDimensionsOfOne) {
  GraphBuilder b;
  const ValueId v = b.Op("TANH", {b.Input({9, 4})});
  const ValueId padded = b.Op("PAD", {v, b.Ints({2, 2}, {2, 1, 0, 0})});
  b.Output(b.Conv(b.Op("RESHAPE", {padded, b.Ints({1, 1, 12, 4})}), 5, 1));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("TANH", "CONV_2D"));
  EXPECT_THAT(outcome.report.steps[1].host_nodes, ElementsAre(1, 2, 3));
}

TEST(FoldPadding, NotThroughAReshapeThatCutsOrJoinsDimensions) {
  for (const Shape& shape : {Shape{1, 2, 6, 4}, Shape{1, 12, 2, 2}, Shape{1, 1, 4, 12}}) {
    GraphBuilder b;
    const ValueId padded =
        b.Op("PAD", {b.Op("TANH", {b.Input({9, 4})}), b.Ints({2, 2}, {2, 1, 0, 0})});
    const ValueId image =
        b.Op("RESHAPE", {padded, b.Ints({shape[0], shape[1], shape[2], shape[3]})});
    b.Output(b.Conv(image, 5, 1));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
                ElementsAre("TANH", "PAD", "CONV_2D"));
  }
}

TEST(FoldPadding, ThroughAReshapeThatOthersRead) {
  GraphBuilder b;
  const ValueId v = b.Op("TANH", {b.Input({9, 4})});
  const ValueId padded = b.Op("PAD", {v, b.Ints({2, 2}, {2, 1, 0, 0})});
  b.Output(b.Conv(b.Op("RESHAPE", {padded, b.Ints({1, 1, 12, 4})}), 5, 1));
  b.Output(b.Op("EXP", {padded}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_THAT(outcome.ops(), ElementsAre("TANH", "PAD", "CONV_2D", "EXP"));
  EXPECT_THAT(outcome.report.steps[2].host_nodes, ElementsAre(3));
}

}  // namespace
}  // namespace fuselite::fusion::testing
