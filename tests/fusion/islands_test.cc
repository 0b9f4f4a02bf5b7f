// Float operators between DEQUANTIZE and QUANTIZE that become steps on integers.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Property;

constexpr float kScale = 0.03f;
constexpr int32_t kZero = -3;

class Islands : public Int8Builder {
 public:
  using Int8Builder::Int8Builder;

  ValueId Float(ValueId x) { return Op("DEQUANTIZE", {x}); }
  ValueId Same(ValueId x) { return Int8Op("QUANTIZE", {x}, kScale, kZero); }
  ValueId Pad(ValueId x) { return Op("PAD", {x, Ints({4, 2}, {0, 0, 1, 0, 2, 1, 0, 0})}); }
  ValueId MaxPool(ValueId x) {
    return Op("MAX_POOL_2D", {x},
              {{"filter_width", 2}, {"filter_height", 3}, {"stride_w", 1}, {"stride_h", 1}});
  }
};

TEST(SinkDequantize, OneOperatorOfEachKind) {
  Islands b;
  ValueId x = b.Float(b.In({1, 6, 4, 8}));
  x = b.MaxPool(b.Pad(x));
  x = b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})});
  x = b.Op("SLICE", {x, b.Ints({0, 1, 0, 2}), b.Ints({1, 4, 7, 5})});
  b.Out(b.Same(x));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  EXPECT_THAT(outcome.ops(),
              ElementsAre("QUANTIZE", "PAD", "MAX_POOL_2D", "TRANSPOSE", "DEQUANTIZE"));
  EXPECT_THAT(
      outcome.report.rewrites,
      Contains(Property(&RewriteRecord::ToString, "move DEQUANTIZE behind SLICE: nodes 1, 5")));
}

// So do values of 16 bits, but not where a float would overflow or be hardly more than nothing.
TEST(SinkDequantize, OfSixteenBits) {
  for (const float scale : {kScale, 1e31f, 1e-31f}) {
    Islands b;
    const TensorInfo wide{.type = DataType::kInt16,
                          .quantization = {.scales = {scale}, .zero_points = {0}}};
    const ValueId x = b.Op("QUANTIZE", {b.Input({5, 7})}, {}, 1, wide)[0];
    b.Output(b.Op("TRANSPOSE", {b.Float(x), b.Ints({1, 0})}));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 0).ops();
    if (scale == kScale) {
      EXPECT_THAT(ops, ElementsAre("QUANTIZE", "TRANSPOSE", "DEQUANTIZE"));
    } else {
      EXPECT_THAT(ops, ElementsAre("QUANTIZE", "DEQUANTIZE", "TRANSPOSE"));
    }
  }
}

TEST(SinkDequantize, NotWithAScaleForEachChannel) {
  Islands b;
  TensorInfo info{.type = DataType::kInt8,
                  .quantization = {.scales = std::vector<float>{0.02f, 0.04f, 0.01f, 0.03f},
                                   .zero_points = std::vector<int32_t>(4, 0),
                                   .axis = 1}};
  const ValueId x = b.Op("QUANTIZE", {b.Input({4, 4})}, {}, 1, info)[0];
  b.Output(b.Op("TRANSPOSE", {b.Float(x), b.Ints({1, 0})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "DEQUANTIZE", "TRANSPOSE"));
}

TEST(SinkDequantize, AnotherQuantizationIsATableBehind) {
  Islands b;
  const ValueId x = b.Op("TRANSPOSE", {b.Float(b.In({5, 7})), b.Ints({1, 0})});
  b.Out(b.Int8Op("QUANTIZE", {b.Op("TANH", {x})}, 0.01f, 4));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "TRANSPOSE", "FUSELITE_ELEMENTWISE + lookup", "DEQUANTIZE"));
}

TEST(SinkDequantize, SeveralInputsOfOneQuantization) {
  Islands b;
  const ValueId x = b.In({1, 4, 5, 6}), y = b.In({1, 4, 5, 3});
  const ValueId whole = b.Op("CONCATENATION", {b.Float(x), b.Float(y)}, {{"axis", 3}});
  b.Out(b.Same(whole));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "QUANTIZE", "DEQUANTIZE"));

  Islands other;
  const ValueId z = other.In({1, 4, 5, 3}, 0.02f, 1);
  const ValueId mixed = other.Op(
      "CONCATENATION", {other.Float(other.In({1, 4, 5, 6})), other.Float(z)}, {{"axis", 3}});
  other.Out(other.Same(mixed));
  EXPECT_THAT(
      ExpectFusedEqualsUnfused(other.graph(), 0).ops(),
      ElementsAre("QUANTIZE", "QUANTIZE", "DEQUANTIZE", "DEQUANTIZE", "QUANTIZE", "DEQUANTIZE"));
}

TEST(SinkDequantize, SeveralOutputs) {
  Islands b;
  const auto parts =
      b.Op("SPLIT", {b.Ints({1}, {1}), b.Float(b.In({3, 8}))}, {{"num_splits", 2}}, 2);
  b.Out(b.Same(parts[0]));
  b.Output(b.Dense(parts[1], 3));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "DEQUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED"));
}

TEST(SinkDequantize, NotWhereMoreIsDequantizedNorWhereOthersRead) {
  Islands b;
  const ValueId tiled = b.Op("TILE", {b.Float(b.In({2, 4})), b.Ints({3, 2})});
  b.Output(b.Op("TANH", {tiled}));
  const ValueId read = b.Float(b.In({2, 4}));
  b.Output(read);
  b.Output(b.Op("TRANSPOSE", {read, b.Ints({1, 0})}));
  EXPECT_THAT(
      ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
      ElementsAre("QUANTIZE", "DEQUANTIZE", "TILE", "TANH", "QUANTIZE", "DEQUANTIZE", "TRANSPOSE"));
}

// Others read the floats; what is quantized again needs none.
TEST(SinkDequantize, WhereOthersReadAndAllIsQuantizedAgain) {
  Islands b;
  const ValueId read = b.Float(b.In({2, 8}));
  b.Output(b.Dense(read, 3));
  b.Out(b.Same(b.Op("TRANSPOSE", {read, b.Ints({1, 0})})));
  const ValueId joined = b.Op("CONCATENATION", {read, read}, {{"axis", 0}});
  b.Out(b.Same(joined));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED", "TRANSPOSE", "DEQUANTIZE",
                          "CONCATENATION", "DEQUANTIZE"));
}

// More is dequantized than before, but on its way to QUANTIZE a function of each becomes a table.
TEST(SinkDequantize, WhereMoreIsQuantizedAgain) {
  for (const std::string then : {"TANH", "TANH of two readers", "ADD", "SOFTMAX"}) {
    SCOPED_TRACE(then);
    Islands b;
    ValueId x = b.Op("TILE", {b.Float(b.In({2, 4})), b.Ints({3, 2})});
    if (then == "TANH of two readers") b.Output(x);
    if (then == "ADD") {
      x = b.Op("ADD", {x, b.Input({6, 8})});
    } else if (then == "SOFTMAX") {
      x = b.Op("SOFTMAX", {x}, {{"beta", 1}});
    } else {
      x = b.Op("TANH", {x});
    }
    x = b.Op("TRANSPOSE", {x, b.Ints({1, 0})});
    b.Out(b.Int8Op("QUANTIZE", {x}, 0.01f, 4));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
    EXPECT_EQ(ops[1], then == "TANH" ? "TILE" : "DEQUANTIZE");
  }
}

TEST(SinkDequantize, NotBehindAnActivation) {
  Islands b;
  const ValueId x = b.Float(b.In({1, 6, 4, 8}));
  b.Out(b.Same(b.Op("MAX_POOL_2D", {x},
                    {{"filter_width", 2},
                     {"filter_height", 2},
                     {"stride_w", 2},
                     {"stride_h", 2},
                     {"fused_activation_function", kRelu6}})));
  EXPECT_THAT(
      ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
      ElementsAre("QUANTIZE", "DEQUANTIZE", "MAX_POOL_2D + relu6", "QUANTIZE", "DEQUANTIZE"));
}

// Chains of what moves values, with requantizations between.
TEST(SinkDequantize, RandomIslands) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Islands b(seed);
    Random& random = b.random();
    ValueId x = b.Float(b.In({1, 4, 6, 8}));
    for (int i = 0; i < 6; ++i) {
      const Shape& s = b.shape(x);
      switch (random.Int(0, 10)) {
        case 0: x = b.Pad(x); break;
        case 1: x = b.MaxPool(x); break;
        case 2: x = b.Op("TRANSPOSE", {x, b.Ints({0, 2, 3, 1})}); break;
        case 3: x = b.Op("RESHAPE", {x, b.Ints({s[0], s[2], s[1], s[3]})}); break;
        case 4: x = b.Op("REVERSE_V2", {x, b.Ints({2})}); break;
        case 5: x = b.Op("GATHER", {x, b.Ints({1, 0, 1})}, {{"axis", 3}}); break;
        case 6: x = b.Op("RESIZE_NEAREST_NEIGHBOR", {x, b.Ints({5, 3})}); break;
        case 7: x = b.Op("MIRROR_PAD", {x, b.Ints({4, 2}, {0, 0, 1, 1, 0, 1, 0, 0})}); break;
        case 8: x = b.Op("CONCATENATION", {x, b.Op("REVERSE_V2", {x, b.Ints({1})})}); break;
        case 9: x = b.Op("TANH", {x}); break;
        default: x = b.Float(b.Int8Op("QUANTIZE", {x}, random.Float(0.01f, 0.05f), 7)); break;
      }
    }
    b.Out(b.Same(x));
    ExpectSameFused(b.graph(), 0);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
