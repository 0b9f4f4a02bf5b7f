// Transposed convolutions to few channels as ordinary ones whose channels are the remainders.
#include "fusion/match.h"
#include "fusion/rewrites/convolutions/output_blocks.h"
#include "kernels/transpose_conv/transpose_conv.h"
#include "tests/fusion/few_channels.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

constexpr char kConv[] = "CONV_2D", kPlaces[] = "DEPTH_TO_SPACE";

struct Layer {
  Shape in;
  int32_t filter_h, filter_w, stride, channels;
  double padding = kSame;
  int32_t stride_h = stride;
};

ValueId Extents(GraphBuilder& b, const Layer& layer) {
  const auto out = [&](int32_t in, int32_t filter, int32_t stride) {
    return layer.padding == kSame ? in * stride : (in - 1) * stride + filter;
  };
  return b.Ints({layer.in[0], out(layer.in[1], layer.filter_h, layer.stride_h),
                 out(layer.in[2], layer.filter_w, layer.stride), layer.channels});
}

Attributes AttributesOf(const Layer& layer, double activation) {
  return {{"stride_w", layer.stride},
          {"stride_h", layer.stride_h},
          {"padding", layer.padding},
          {"fused_activation_function", activation}};
}

std::vector<std::string> FloatOps(const Layer& layer, double activation = 0) {
  GraphBuilder b(layer.filter_h * 100 + layer.channels);
  const ValueId weights = b.Constant({layer.channels, layer.filter_h, layer.filter_w, layer.in[3]});
  const ValueId bias = b.Constant({layer.channels});
  b.Output(b.Op("TRANSPOSE_CONV", {Extents(b, layer), weights, b.Input(layer.in), bias},
                AttributesOf(layer, activation)));
  return ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops();
}

TEST(TransposeConvInBlocks, OfFewChannels) {
  EXPECT_THAT(FloatOps({{1, 7, 6, 5}, 2, 2, 2, 1}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{2, 7, 6, 5}, 3, 3, 2, 2}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{1, 1, 9, 17}, 4, 4, 2, 3}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{1, 7, 6, 5}, 3, 5, 2, 1}, kRelu), ElementsAre("CONV_2D + relu", kPlaces));
  EXPECT_THAT(FloatOps({{1, 5, 6, 5}, 5, 4, 3, 1}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{1, 5, 6, 3}, 4, 4, 4, 1}), ElementsAre(kConv, kPlaces));
  EXPECT_THAT(FloatOps({{1, 5, 6, 3}, 2, 4, 2, 1, kValid}), ElementsAre(kConv, kPlaces));
}

TEST(TransposeConvInBlocks, NotOfMoreOrWherePixelsAreLeftOver) {
  EXPECT_THAT(FloatOps({{1, 7, 6, 5}, 2, 2, 2, 5}), ElementsAre("TRANSPOSE_CONV"));
  EXPECT_THAT(FloatOps({{1, 1, 6, 5}, 1, 3, 2, 5, kSame, 1}), ElementsAre("TRANSPOSE_CONV"));
  EXPECT_THAT(FloatOps({{1, 7, 6, 5}, 3, 3, 2, 1, kValid}), ElementsAre("TRANSPOSE_CONV"));
}

// The axis has the outputs as inputs of a window, which reaches into the padding on both sides.
TEST(TransposeConvInBlocks, NotOfWindowsThatEndInside) {
  const kernels::WindowAxis axis{
      .input = 12, .filter = 3, .stride = 2, .output = 6, .before = 1, .after = 0};
  EXPECT_TRUE(BlocksOfTransposed(axis).has_value());
  kernels::WindowAxis before = axis, after = axis;
  before.before = 3;
  after.output = 9;
  EXPECT_FALSE(BlocksOfTransposed(before).has_value());
  EXPECT_FALSE(BlocksOfTransposed(after).has_value());
}

// With dynamic range a transposed convolution scales its terms otherwise than a convolution.
TEST(TransposeConvInBlocks, NotOfDynamicRange) {
  for (const int32_t stride : {1, 2}) {
    const Layer layer{{1, 7, 6, 5}, 2, 2, stride, 3};
    Int8Builder b;
    b.Output(b.Op("TRANSPOSE_CONV",
                  {Extents(b, layer), Int8Filters(b, {3, 2, 2, 5}), b.Input(layer.in)},
                  AttributesOf(layer, 0)));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(), ElementsAre("TRANSPOSE_CONV"));
  }
}

// What lies in a row, or an only column, is in its place.
TEST(TransposeConvInBlocks, OfLinesTakeNoPlaces) {
  EXPECT_THAT(FloatOps({{1, 1, 30, 9}, 1, 16, 8, 1, kValid, 1}), ElementsAre(kConv));
  EXPECT_THAT(FloatOps({{2, 5, 11, 9}, 3, 4, 2, 3, kSame, 1}), ElementsAre(kConv));
  EXPECT_THAT(FloatOps({{1, 21, 1, 9}, 4, 1, 1, 2, kSame, 2}), ElementsAre(kConv));
  EXPECT_THAT(FloatOps({{1, 21, 2, 9}, 4, 1, 1, 2, kSame, 2}), ElementsAre("TRANSPOSE_CONV"));
}

TEST(TransposeConvInBlocks, OfStrideOneAreConvolutions) {
  for (const double padding : {kSame, kValid}) {
    EXPECT_THAT(FloatOps({{1, 7, 6, 5}, 4, 4, 1, 1, padding}), ElementsAre(kConv));
    EXPECT_THAT(FloatOps({{2, 5, 9, 8}, 3, 2, 1, 33, padding}, kRelu),
                ElementsAre("CONV_2D + relu"));
    EXPECT_THAT(FloatOps({{1, 1, 20, 3}, 1, 5, 1, 7, padding}), ElementsAre(kConv));
  }
}

// What its tail has goes along: the function after it, not the addition of another value.
TEST(TransposeConvInBlocks, TakesTheTailAlong) {
  for (const bool plain : {true, false}) {
    GraphBuilder b;
    const ValueId x = b.Op("TRANSPOSE_CONV",
                           {b.Ints({1, 8, 8, 1}), b.Constant({1, 2, 2, 5}), b.Input({1, 4, 4, 5})},
                           {{"stride_w", 2}, {"stride_h", 2}});
    b.Output(plain ? b.Op("LOGISTIC", {x}) : b.Op("ADD", {x, b.Input({1, 8, 8, 1})}));
    const auto ops = ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops();
    if (plain) {
      EXPECT_THAT(ops, ElementsAre("CONV_2D + logistic", kPlaces));
    } else {
      EXPECT_THAT(ops, ElementsAre("TRANSPOSE_CONV + add"));
    }
  }
}

std::vector<std::string> Int8Ops(const Layer& layer, bool function = false) {
  Int8Builder b(layer.filter_w);
  const ValueId weights =
      Int8Filters(b, {layer.channels, layer.filter_h, layer.filter_w, layer.in[3]});
  ValueId y = b.Int8Op("TRANSPOSE_CONV", {Extents(b, layer), weights, b.In(layer.in)}, 0.05f, 4,
                       AttributesOf(layer, 0));
  if (function) y = b.Int8Op("LOGISTIC", {y}, 1.0f / 256, -128);
  b.Out(y);
  return ExpectFusedEqualsUnfused(b.graph(), 0).ops();
}

TEST(TransposeConvInBlocks, KeepsTheBitsOfIntegers) {
  const auto in_place = ElementsAre("QUANTIZE", kConv, "DEQUANTIZE");
  for (const int32_t filter : {2, 3, 4}) {
    for (const int32_t channels : {1, 3}) {
      EXPECT_THAT(Int8Ops({{2, 7, 5, 6}, filter, filter, 2, channels}),
                  ElementsAre("QUANTIZE", kConv, kPlaces, "DEQUANTIZE"));
      EXPECT_THAT(Int8Ops({{2, 7, 5, 6}, filter, filter, 1, channels}), in_place);
      EXPECT_THAT(Int8Ops({{2, 1, 9, 6}, 1, 2 * filter, 4, channels, kSame, 1}), in_place);
      EXPECT_THAT(Int8Ops({{1, 8, 1, 6}, 2 * filter, 1, 1, channels, kSame, 4}), in_place);
    }
  }
}

// The tail then has a multiplier for each channel.
TEST(TransposeConvInBlocks, RepeatsWhatTheTailHasForEachChannel) {
  EXPECT_THAT(Int8Ops({{2, 7, 5, 6}, 2, 2, 2, 3}, true),
              ElementsAre("QUANTIZE", "CONV_2D + requantize + lookup", kPlaces, "DEQUANTIZE"));
}

std::vector<std::string> Int16Ops(const Layer& layer) {
  GraphBuilder b;
  const TensorInfo shorts{.type = DataType::kInt16,
                          .quantization = {.scales = {0.001f}, .zero_points = {0}}};
  const ValueId x = b.Op("QUANTIZE", {b.Input(layer.in)}, {}, 1, shorts)[0];
  const ValueId weights =
      b.Int8Constant({layer.channels, layer.filter_h, layer.filter_w, layer.in[3]}, 0.01f);
  const ValueId y =
      b.Op("TRANSPOSE_CONV", {Extents(b, layer), weights, x}, AttributesOf(layer, 0), 1, shorts)[0];
  b.Output(b.Op("DEQUANTIZE", {y}));
  return ExpectFusedEqualsUnfused(b.graph(), 0).ops();
}

// DEPTH_TO_SPACE takes no int16.
TEST(TransposeConvInBlocks, OfInt16OnlyAlongLines) {
  EXPECT_THAT(Int16Ops({{1, 4, 4, 5}, 2, 2, 2, 1}),
              ElementsAre("QUANTIZE", "TRANSPOSE_CONV", "DEQUANTIZE"));
  EXPECT_THAT(Int16Ops({{1, 1, 17, 5}, 1, 4, 2, 3, kSame, 1}),
              ElementsAre("QUANTIZE", kConv, "DEQUANTIZE"));
}

// MediaPipe's operator, which has no output shape among its inputs.
std::vector<std::string> WithBiasOps(int32_t channels) {
  GraphBuilder b(channels);
  Node node;
  node.op = kernels::FindOperator("Convolution2DTransposeBias");
  auto& params = node.params.as<kernels::TransposeConvParams>();
  params.padding = kernels::Padding::kSame;
  params.stride_w = params.stride_h = 2;
  node.inputs = {b.Input({1, 4, 6, 4}), b.Constant({channels, 2, 2, 4}), b.Constant({channels})};
  Value out;
  out.info = {.type = DataType::kFloat32, .shape = {1, 8, 12, channels}};
  node.outputs = {b.graph().AddValue(out)};
  const ValueId y = node.outputs[0];
  b.graph().AddNode(std::move(node));
  b.Output(b.Op("RELU", {y}));
  return ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops();
}

TEST(PlainTransposeConv, TakesATailAndIsAConvolutionOfFewChannels) {
  EXPECT_THAT(WithBiasOps(6), ElementsAre("TRANSPOSE_CONV + clamp(0, inf)"));
  EXPECT_THAT(WithBiasOps(2), ElementsAre("CONV_2D + clamp(0, inf)", kPlaces));
}

}  // namespace
}  // namespace fuselite::fusion::testing
