// Residuals as PyTorch's quantizer leaves them: float sums of bytes.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

class Residuals : public Int8Builder {
 public:
  ValueId Float(ValueId x) { return Op("DEQUANTIZE", {x}); }
  ValueId Bytes(ValueId x) { return Int8Op("QUANTIZE", {x}, 0.05f, 4); }
  ValueId Layer(ValueId x) { return Conv8(x, 8, 1, 0.04f, -7); }
};

const char* const kSum = "FUSELITE_DEQUANTIZED_SUM";

TEST(DequantizedSum, OfTwoWithEachActivation) {
  for (const double activation : {0.0, kRelu, kRelu6, kReluN1To1}) {
    for (const bool apart : {false, true}) {
      if (apart && activation == 0) continue;
      SCOPED_TRACE(activation);
      Residuals b;
      const ValueId x = b.In({1, 5, 5, 8});
      const Attributes fused = {{"fused_activation_function", apart ? 0 : activation}};
      ValueId sum = b.Op("ADD", {b.Float(b.Layer(x)), b.Float(x)}, fused);
      if (apart) {
        sum = b.Op(activation == kRelu    ? "RELU"
                   : activation == kRelu6 ? "RELU6"
                                          : "RELU_N1_TO_1",
                   {sum});
      }
      b.Out(b.Bytes(sum));
      const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
      EXPECT_THAT(outcome.ops(), ElementsAre("QUANTIZE", "CONV_2D", kSum, "DEQUANTIZE"));
    }
  }
}

// The float sum of one is a term of the next.
TEST(DequantizedSum, ChainsAreComputedFromBytes) {
  Residuals b;
  const ValueId x = b.Layer(b.In({1, 5, 5, 8}));
  ValueId sum = b.Float(x), bytes = x;
  for (int i = 0; i < 3; ++i) {
    const ValueId layer = b.Float(b.Layer(bytes));
    sum = i == 1 ? b.Op("ADD", {layer, sum})
                 : b.Op("ADD", {sum, layer}, {{"fused_activation_function", kRelu6}});
    bytes = b.Bytes(sum);
  }
  b.Out(bytes);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "CONV_2D", "CONV_2D", kSum, "CONV_2D", kSum, "CONV_2D", kSum,
                          "DEQUANTIZE"));
}

// More terms than a step takes: their floats go on from sum to sum.
TEST(DequantizedSum, LongChainsKeepTheirFloats) {
  Residuals b;
  const ValueId x = b.In({3, 8});
  ValueId sum = b.Float(x);
  for (int i = 0; i < 12; ++i) {
    sum = b.Op("ADD", {sum, b.Float(x)});
    b.Out(b.Bytes(sum));
  }
  const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 0).ops();
  EXPECT_EQ(std::ranges::count(ops, kSum), 8);
}

TEST(DequantizedSum, TheLastTermsOfALongChainAreOne) {
  Residuals b;
  ValueId sum = b.Float(b.In({3, 8}));
  for (int i = 0; i < 12; ++i) sum = b.Op("ADD", {sum, b.Float(b.In({3, 8}))});
  b.Out(b.Bytes(sum));
  const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 0).ops();
  EXPECT_EQ(std::ranges::count(ops, kSum), 1);
}

TEST(DequantizedSum, FloatsAreTermsWhereOnlyTheSumReadsThem) {
  for (const bool shared : {false, true}) {
    Residuals b;
    const ValueId x = b.In({1, 5, 5, 8});
    const ValueId sum = b.Op("ADD", {b.Op("EXP", {b.Input({1, 5, 5, 8})}), b.Float(x)});
    b.Out(b.Bytes(sum));
    if (shared) b.Output(b.Op("NEG", {sum}));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
    EXPECT_EQ(std::ranges::count(ops, kSum), shared ? 0 : 1);
  }
}

// A sum with a broadcast, what has a scale for each channel, and 16 bits.
TEST(DequantizedSum, WhatIsNoByteIsAFloatTerm) {
  const TensorInfo by_channel{
      .type = DataType::kInt8,
      .quantization = {.scales = std::vector<float>{0.02f, 0.04f, 0.01f, 0.03f},
                       .zero_points = std::vector<int32_t>(4, 0),
                       .axis = 1}};
  const TensorInfo wide{.type = DataType::kInt16,
                        .quantization = {.scales = {0.01f}, .zero_points = {0}}};
  for (int which = 0; which < 3; ++which) {
    SCOPED_TRACE(which);
    Residuals b;
    ValueId term;
    if (which == 0) {
      term = b.Op("ADD", {b.Float(b.In({3, 4})), b.Float(b.In({4}))});
    } else {
      const TensorInfo& info = which == 1 ? by_channel : wide;
      term = b.Float(b.Op("QUANTIZE", {b.Input({3, 4})}, {}, 1, info)[0]);
    }
    b.Out(b.Bytes(b.Op("ADD", {term, b.Float(b.In({3, 4}))})));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
    EXPECT_EQ(std::ranges::count(ops, kSum), 1);
  }
}

// The clamp cannot become the sum's tail, and what comes behind becomes the clamp's.
TEST(DequantizedSum, NotThroughAClampWithMoreBehind) {
  Residuals b;
  const ValueId sum = b.Op("ADD", {b.Float(b.In({3, 4})), b.Float(b.In({3, 4}))});
  b.Output(b.Op("NEG", {sum}));
  b.Out(b.Bytes(b.Op("LOGISTIC", {b.Op("RELU_N1_TO_1", {sum})})));
  const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
  EXPECT_EQ(std::ranges::count(ops, kSum), 0);
}

TEST(DequantizedSum, NotOfFloatsNorWithBroadcasts) {
  Residuals b;
  const ValueId x = b.Input({1, 5, 5, 8});
  b.Out(b.Bytes(b.Op("ADD", {x, b.Input({1, 5, 5, 8})})));
  b.Out(b.Bytes(b.Op("ADD", {x, b.Float(b.In({8}))})));
  const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
  EXPECT_EQ(std::ranges::count(ops, kSum), 0);
}

}  // namespace
}  // namespace fuselite::fusion::testing
