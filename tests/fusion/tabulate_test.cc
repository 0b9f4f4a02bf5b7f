// Functions of one 8-bit value as tables.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

class Bytes : public Int8Builder {
 public:
  ValueId Scalar8(float scale, Shape shape = {1}) { return Int8Constant(shape, scale); }
  ValueId Logistic(ValueId x) { return Int8Op("LOGISTIC", {x}, 1.0f / 256, -128); }
  ValueId Silu(ValueId x) { return Int8Op("MUL", {x, Logistic(x)}, 0.02f, -110); }
};

TEST(Tabulate, SiluIntoItsLayers) {
  Bytes b;
  ValueId x = b.Silu(b.Conv8(b.In({1, 6, 5, 8}), 13, 3, 0.04f, 5));
  x = b.Silu(b.Depthwise8(x, 3, 0.03f, 2));
  b.Out(b.Silu(b.Dense8(x, 9, 0.02f, 0)));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_THAT(outcome.ops(), ElementsAre("QUANTIZE", "CONV_2D + requantize + lookup",
                                         "DEPTHWISE_CONV_2D + requantize + lookup",
                                         "FULLY_CONNECTED + rescale + lookup", "DEQUANTIZE"));
  EXPECT_THAT(outcome.report.steps[1].host_nodes, ElementsAre(1, 2, 3));
}

TEST(Tabulate, HardSwishFromItsParts) {
  Bytes b;
  const ValueId x = b.In({2, 7, 19});
  const ValueId shifted = b.Int8Op("ADD", {x, b.Scalar8(0.05f, {1, 1, 1})}, 0.05f, 3,
                                   {{"fused_activation_function", kRelu6}});
  const ValueId gate = b.Int8Op("MUL", {b.Scalar8(0.01f), shifted}, 0.02f, -100);
  b.Out(b.Int8Op("MUL", {gate, x}, 0.03f, -20));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "FUSELITE_ELEMENTWISE + lookup", "DEQUANTIZE"));
}

TEST(Tabulate, SquaresRequantizationsAndFloatIslands) {
  Bytes b;
  ValueId x = b.In({3, 33});
  x = b.Int8Op("MUL", {x, x}, 0.1f, -120);
  x = b.Int8Op("QUANTIZE", {x}, 0.05f, -128);
  x = b.Op("SQRT", {b.Op("DEQUANTIZE", {x})});
  x = b.Op("MUL", {x, b.Scalar(0.7f)});
  b.Out(b.Int8Op("QUANTIZE", {b.Op("SUB", {b.Scalar(1.0f), x})}, 0.02f, 7));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "FUSELITE_ELEMENTWISE + lookup", "DEQUANTIZE"));
}

TEST(Tabulate, ChoicesByComparisons) {
  Bytes b;
  const ValueId x = b.In({3, 33});
  const ValueId more = b.Op("GREATER", {x, b.Scalar8(0.03f)});
  const ValueId less = b.Int8Op("MUL", {x, b.Scalar8(0.01f)}, 0.03f, -3);
  b.Out(b.Int8Op("SELECT_V2", {more, x, less}, 0.03f, -3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "FUSELITE_ELEMENTWISE + lookup", "DEQUANTIZE"));
}

// Numbers alone make no function, and what fails on some codes is no table.
TEST(Tabulate, NotOfNumbersNorOfWhatFails) {
  Bytes b;
  b.Out(b.Int8Op("QUANTIZE", {b.Scalar(0.5f)}, 0.03f, 0));
  const ValueId x =
      b.Conv8(b.In({1, 6, 5, 8}), 13, 3, 0.04f, -100, {{"fused_activation_function", kRelu}});
  b.Out(b.Logistic(b.Int8Op("RSQRT", {x}, 0.02f, -110)));
  EXPECT_THAT(ExpectSameFused(b.graph(), 0).ops(), Contains("RSQRT"));
}

TEST(Tabulate, OtherReadersKeepTheirValues) {
  Bytes b;
  const ValueId x = b.In({1, 4, 4, 5}), gate = b.Logistic(x);
  b.Out(b.Int8Op("MUL", {x, gate}, 0.02f, -110));
  b.Out(gate);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "LOGISTIC", "FUSELITE_ELEMENTWISE + lookup", "DEQUANTIZE",
                          "DEQUANTIZE"));
}

TEST(Tabulate, NotOfTwoValuesNorPerElementConstants) {
  Bytes b;
  const ValueId x = b.In({2, 8}), y = b.In({2, 8});
  b.Out(b.Int8Op("MUL", {x, b.Logistic(y)}, 0.02f, 0));
  b.Out(b.Int8Op("MUL", {x, b.Int8Constant({8}, 0.01f)}, 0.02f, 0));
  b.Out(b.Int8Op("MUL", {b.Logistic(x), b.In({1, 8})}, 0.02f, 0));  // broadcasts
  for (const std::string& op : ExpectFusedEqualsUnfused(b.graph(), 0).ops()) {
    EXPECT_EQ(op.find("lookup"), std::string::npos) << op;
  }
}

TEST(Tabulate, BehindATransposedConvolution) {
  Bytes b;
  const ValueId x = b.In({1, 4, 5, 8});
  const ValueId up =
      b.Int8Op("TRANSPOSE_CONV", {b.Ints({1, 8, 10, 11}), b.Int8Constant({11, 3, 3, 8}, 0.01f), x},
               0.02f, 5, {{"stride_w", 2}, {"stride_h", 2}});
  b.Out(b.Silu(up));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "TRANSPOSE_CONV + requantize + lookup", "DEQUANTIZE"));
}

// Chains of random operators on values that all come from one.
TEST(Tabulate, RandomFunctionsOfOneValue) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bytes b;
    Random random(seed);
    std::vector<ValueId> values = {b.In({2, 3, 37})};
    const auto any = [&] { return values[random.Int(0, values.size() - 1)]; };
    for (int i = 0; i < 6; ++i) {
      const float scale = random.Float(0.01f, 0.05f);
      const auto zero = static_cast<int32_t>(random.Int(-128, 127));
      switch (random.Int(0, 4)) {
        case 0: values.push_back(b.Logistic(any())); break;
        case 1: values.push_back(b.Int8Op("MUL", {any(), any()}, scale, zero)); break;
        case 2: values.push_back(b.Int8Op("SUB", {any(), b.Scalar8(scale)}, scale, zero)); break;
        case 3: values.push_back(b.Int8Op("HARD_SWISH", {any()}, 0.06f, zero)); break;
        default: values.push_back(b.Int8Op("ADD", {any(), any()}, scale, zero)); break;
      }
    }
    b.Out(values.back());
    for (const std::string& op : ExpectSameFused(b.graph(), 0).ops()) {
      EXPECT_EQ(op.find("MUL"), std::string::npos) << op;
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
