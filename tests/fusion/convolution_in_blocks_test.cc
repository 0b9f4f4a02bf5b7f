// Convolutions to few channels with blocks of outputs as channels.
#include "fusion/match.h"
#include "tests/fusion/few_channels.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Not;

constexpr char kConv[] = "CONV_2D", kPlaces[] = "DEPTH_TO_SPACE", kCut[] = "SLICE";

struct Layer {
  Shape in;
  int32_t filter_h, filter_w, channels;
  double padding = kSame;
  int32_t stride = 1;
};

Attributes AttributesOf(const Layer& layer, double activation = 0) {
  return {{"stride_w", layer.stride},
          {"stride_h", layer.stride},
          {"padding", layer.padding},
          {"fused_activation_function", activation}};
}

ValueId Convolution(GraphBuilder& b, const Layer& layer, double activation = 0) {
  const ValueId weights = b.Constant({layer.channels, layer.filter_h, layer.filter_w, layer.in[3]});
  const ValueId bias = b.Constant({layer.channels});
  return b.Op("CONV_2D", {b.Input(layer.in), weights, bias}, AttributesOf(layer, activation));
}

Outcome FloatOutcome(const Layer& layer, double activation = 0) {
  GraphBuilder b(layer.filter_h * 100 + layer.channels);
  b.Output(Convolution(b, layer, activation));
  return ExpectFusedEqualsUnfused(b.graph(), 1e-4f);
}

std::vector<std::string> FloatOps(const Layer& layer, double activation = 0) {
  return FloatOutcome(layer, activation).ops();
}

// Lines take no step that brings outputs to their places: the record tells.
void ExpectBlocks(const Outcome& outcome) {
  EXPECT_THAT(outcome.report.rewrites,
              Contains(Field(&RewriteRecord::what, "convolve with blocks of outputs as channels")));
}

TEST(ConvolutionInBlocks, OfFewChannels) {
  EXPECT_THAT(FloatOps({{1, 36, 40, 8}, 3, 3, 1}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{1, 33, 31, 9}, 3, 3, 1}), ElementsAre(kConv, kPlaces, kCut));
  EXPECT_THAT(FloatOps({{2, 26, 22, 17}, 4, 4, 2}, kRelu), ElementsAre("CONV_2D + relu", kPlaces));
  EXPECT_THAT(FloatOps({{1, 17, 33, 7}, 3, 5, 4}), ElementsAre(kConv, kPlaces, kCut));
  EXPECT_THAT(FloatOps({{1, 34, 34, 8}, 3, 3, 3, kValid}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{3, 20, 19, 13}, 7, 2, 2, kValid}), ElementsAre(kConv, kPlaces));
}

TEST(ConvolutionInBlocks, OfLinesTakeNoPlaces) {
  for (const Layer& layer : {Layer{{1, 1, 1024, 16}, 1, 9, 1}, Layer{{2, 500, 1, 16}, 5, 1, 4},
                             Layer{{1, 1, 1000, 7}, 3, 5, 2}}) {
    const Outcome outcome = FloatOutcome(layer);
    ExpectBlocks(outcome);
    EXPECT_THAT(outcome.ops(), ElementsAre(kConv));
  }
  EXPECT_THAT(FloatOps({{1, 1, 999, 16}, 1, 7, 1, kValid}), ElementsAre(kConv, kCut));
  EXPECT_THAT(FloatOps({{1, 698, 1, 9}, 8, 1, 3}, kRelu), ElementsAre("CONV_2D + relu", kCut));
}

TEST(ConvolutionInBlocks, NotWhereTheyRepayNothing) {
  const auto is_left = ElementsAre(kConv);
  EXPECT_THAT(FloatOps({{1, 36, 40, 64}, 1, 1, 1}), is_left);  // every tap is met
  EXPECT_THAT(FloatOps({{1, 36, 40, 8}, 3, 3, 5}), is_left);   // too many channels
  EXPECT_THAT(FloatOps({{1, 36, 40, 8}, 3, 3, 1, kSame, 2}), is_left);
  EXPECT_TRUE(FloatOutcome({{1, 1, 1024, 16}, 1, 9, 5}).report.rewrites.empty());
  EXPECT_THAT(FloatOps({{1, 36, 40, 3}, 3, 3, 1}), is_left);  // few terms
  EXPECT_THAT(FloatOps({{1, 9, 9, 64}, 3, 3, 1}), is_left);   // few blocks
}

TEST(ConvolutionInBlocks, TakesTheTailAlong) {
  const Layer layer{{1, 36, 40, 8}, 3, 3, 1};
  for (const bool plain : {true, false}) {
    GraphBuilder b;
    const ValueId x = Convolution(b, layer);
    b.Output(plain ? b.Op("LOGISTIC", {x}) : b.Op("ADD", {x, b.Input({1, 36, 40, 1})}));
    const auto ops = ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops();
    if (plain) {
      EXPECT_THAT(ops, ElementsAre("CONV_2D + logistic", kPlaces));
    } else {
      EXPECT_THAT(ops, ElementsAre("CONV_2D + add"));
    }
  }
}

Outcome Int8Outcome(const Layer& layer, bool function) {
  Int8Builder b(layer.channels);
  const ValueId weights =
      Int8Filters(b, {layer.channels, layer.filter_h, layer.filter_w, layer.in[3]});
  ValueId y = b.Int8Op("CONV_2D", {b.In(layer.in), weights}, 0.05f, 4, AttributesOf(layer));
  if (function) y = b.Int8Op("LOGISTIC", {y}, 1.0f / 256, -128);
  b.Out(y);
  return ExpectFusedEqualsUnfused(b.graph(), 0);
}

std::vector<std::string> Int8Ops(const Layer& layer, bool function) {
  return Int8Outcome(layer, function).ops();
}

TEST(ConvolutionInBlocks, KeepsTheBitsOfIntegers) {
  for (const int32_t channels : {1, 3}) {
    for (const int32_t width : {40, 39}) {
      const Layer layer{{2, 24, width, 10}, 3, 3, channels};
      const auto ops = Int8Ops(layer, false);
      ASSERT_GE(ops.size(), 4u);
      EXPECT_EQ(ops[1], kConv);
      EXPECT_EQ(ops[2], kPlaces);
    }
  }
  EXPECT_THAT(Int8Ops({{1, 24, 40, 10}, 3, 3, 3}, true),
              ElementsAre("QUANTIZE", "CONV_2D + requantize + lookup", kPlaces, "DEQUANTIZE"));
  for (const int32_t channels : {1, 3}) {
    const Outcome outcome = Int8Outcome({{2, 1, 800, 10}, 1, 9, channels}, false);
    ExpectBlocks(outcome);
    EXPECT_THAT(outcome.ops(), ElementsAre("QUANTIZE", kConv, "DEQUANTIZE"));
  }
}

// Sums of integers are the same; each image keeps the scale of its own values.
TEST(ConvolutionInBlocks, OfDynamicRange) {
  for (const int32_t channels : {1, 3}) {
    const Layer layer{{2, 24, 39, 10}, 3, 3, channels};
    Int8Builder b(channels);
    const ValueId filters = Int8Filters(b, {channels, 3, 3, layer.in[3]});
    const ValueId y = b.Op("CONV_2D", {b.Input(layer.in), filters, b.Constant({channels})},
                           AttributesOf(layer, kRelu));
    b.Output(b.Op("LOGISTIC", {y}));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-6f);
    ExpectBlocks(outcome);
    EXPECT_EQ(outcome.ops()[1], kPlaces);
  }
}

std::vector<ValueId> Typed(GraphBuilder& b, std::string_view op, const std::vector<ValueId>& inputs,
                           DataType type, int32_t zero_point, const Attributes& attributes = {}) {
  const TensorInfo output{.type = type,
                          .quantization = {.scales = {0.04f}, .zero_points = {zero_point}}};
  return b.Op(op, inputs, attributes, 1, output);
}

// Taps that an output does not meet are the filters' zero point.
TEST(ConvolutionInBlocks, OfUnsignedBytes) {
  const Layer layer{{1, 24, 40, 10}, 3, 3, 2};
  GraphBuilder b;
  const ValueId x = Typed(b, "QUANTIZE", {b.Input(layer.in)}, DataType::kUInt8, 131)[0];
  const ValueId filters = b.Int8Constant({layer.channels, 3, 3, layer.in[3]}, 0.01f);
  TensorInfo& info = b.graph().value(filters).info;
  info.type = DataType::kUInt8;
  info.quantization.zero_points = {117};
  const ValueId y =
      Typed(b, "CONV_2D", {x, filters}, DataType::kUInt8, 120, AttributesOf(layer))[0];
  b.Output(b.Op("DEQUANTIZE", {y}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  ExpectBlocks(outcome);
  EXPECT_THAT(outcome.ops(), ElementsAre("QUANTIZE", kConv, kPlaces, "DEQUANTIZE"));
}

// A pixel of a filter of half bytes may begin within a byte.
TEST(ConvolutionInBlocks, NotOfHalfBytes) {
  const Layer layer{{1, 24, 40, 10}, 3, 3, 2};
  Int8Builder b;
  std::vector<std::byte> bytes(2 * 3 * 3 * 10 / 2);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(b.random().Int(0, 255));
  const TensorInfo info{.type = DataType::kInt4,
                        .shape = {2, 3, 3, 10},
                        .quantization = {.scales = {0.1f}, .zero_points = {0}}};
  const ValueId filters = b.graph().AddConstant(info, bytes, "filters");
  b.Out(b.Int8Op("CONV_2D", {b.In(layer.in), filters}, 0.05f, 4, AttributesOf(layer)));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", kConv, "DEQUANTIZE"));
}

// What is made of a layer of bytes for an instruction set, whether this machine has it or not.
std::vector<RewriteRecord> RecordsFor(const Layer& layer, Isa isa) {
  Int8Builder b;
  const ValueId filters =
      b.Int8Constant({layer.channels, layer.filter_h, layer.filter_w, layer.in[3]}, 0.01f);
  b.Out(b.Int8Op("CONV_2D", {b.In(layer.in), filters}, 0.05f, 4, AttributesOf(layer)));
  CompileOptions options = Fused();
  options.isa = isa;
  return RecordsOf(b.graph(), options);
}

TEST(ConvolutionInBlocks, PairsForVectorsOf16SumsAlone) {
  const auto in_blocks =
      Contains(Field(&RewriteRecord::what, "convolve with blocks of outputs as channels"));
  const Layer layer{{1, 24, 40, 3}, 3, 3, 8};
  for (const Isa isa : {Isa::kAvx512Vnni, Isa::kAmx}) {
    EXPECT_EQ(OfThisArchitecture(isa), ::testing::Value(RecordsFor(layer, isa), in_blocks));
  }
  EXPECT_THAT(RecordsFor(layer, Isa::kAvx512), Not(in_blocks));
  // Each output meets as many terms beside zeros.
  const Layer deep{{1, 24, 40, 96}, 1, 1, 8};
  EXPECT_THAT(RecordsFor(deep, Isa::kAvx512Vnni), Not(in_blocks));
}

// Two outputs side by side fill vectors of bytes that one leaves half empty.
TEST(ConvolutionInBlocks, PairsOfAFirstLayerOfBytes) {
  const Isa isa = DetectIsa();
  if (!isa.has(Feature::kAvx512Vnni)) {
    GTEST_SKIP() << "vectors of 16 sums of bytes are not there";
  }
  const auto left_alone = ElementsAre("QUANTIZE", kConv, "DEQUANTIZE");
  for (const int32_t channels : {5, 8}) {
    for (const int32_t stride : {1, 2}) {
      for (const double padding : {kSame, kValid}) {
        const Outcome outcome = Int8Outcome(
            {{2, 23, padding == kSame ? 40 : 43 - stride, 3}, 3, 3, channels, padding, stride},
            true);
        ExpectBlocks(outcome);
      }
    }
  }
  const Outcome odd = Int8Outcome({{1, 24, 39, 3}, 3, 3, 8}, false);
  EXPECT_TRUE(odd.report.rewrites.empty());
  EXPECT_THAT(odd.ops(), left_alone);
  EXPECT_TRUE(Int8Outcome({{1, 24, 40, 3}, 3, 3, 9}, false).report.rewrites.empty());
  // Outputs of a concatenation are written where they belong.
  Int8Builder b(8);
  const ValueId x = b.In({1, 24, 40, 3});
  std::vector<ValueId> parts;
  for (int i = 0; i < 2; ++i) {
    parts.push_back(b.Int8Op("CONV_2D", {x, Int8Filters(b, {8, 3, 3, 3})}, 0.05f, 4,
                             AttributesOf({{1, 24, 40, 3}, 3, 3, 8})));
  }
  b.Out(b.Int8Op("CONCATENATION", parts, 0.05f, 4, {{"axis", 3}}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", kConv, kConv, "DEQUANTIZE"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
