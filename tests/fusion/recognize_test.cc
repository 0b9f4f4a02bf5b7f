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
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("LOGISTIC + mul"));
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

// As the PyTorch converter writes it.
TEST(Prelu, FromACondition) {
  for (const bool scalar : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Conv(b.Input({1, 5, 5, 4}), 6, 1);
    const ValueId alpha = scalar ? b.Scalar(0.25f) : b.Constant({1, 1, 1, 6});
    const ValueId positive = b.Op("GREATER", {x, b.Scalar(0)});
    b.Output(b.Op("SELECT_V2", {positive, x, b.Op("MUL", {alpha, x})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                ElementsAre(scalar ? "CONV_2D + leaky_relu(0.25)" : "CONV_2D + prelu"));
  }
}

// As the PyTorch converter takes it apart.
TEST(Prelu, FromTwoRelus) {
  for (const bool scalar : {true, false}) {
    GraphBuilder b;
    const ValueId x = b.Conv(b.Input({1, 5, 6, 3}), 7, 1);
    const ValueId alpha = scalar ? b.Scalar(0.25f) : b.Constant({7});
    const ValueId negative = b.Op("MUL", {x, b.Scalar(-1)}, {{"fused_activation_function", kRelu}});
    b.Output(b.Op("SUB", {b.Op("RELU", {x}), b.Op("MUL", {negative, alpha})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
                ElementsAre(scalar ? "CONV_2D + leaky_relu(0.25)" : "CONV_2D + prelu"));
  }
}

TEST(Prelu, NotOfAnotherFactor) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 7});
  const ValueId negative = b.Op("MUL", {x, b.Scalar(-2)}, {{"fused_activation_function", kRelu}});
  b.Output(b.Op("SUB", {b.Op("RELU", {x}), b.Op("MUL", {negative, b.Scalar(0.5f)})}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops()) {
    EXPECT_EQ(ops.find("leaky"), std::string::npos) << ops;
  }
}

TEST(Prelu, NotOfAnotherCondition) {
  GraphBuilder b;
  const ValueId x = b.Input({4, 6});
  const ValueId negative = b.Op("LESS", {x, b.Scalar(0)});
  b.Output(b.Op("SELECT_V2", {negative, x, b.Op("MUL", {x, b.Scalar(0.25f)})}));
  EXPECT_EQ(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops().size(), 3u);
}

// x^3 as products, as SQUARE times x, or as a power.
enum class Cubes { kProducts, kSquare, kPower };
ValueId Cube(GraphBuilder& b, ValueId x, Cubes cubes) {
  if (cubes == Cubes::kPower) return b.Op("POW", {x, b.Scalar(3)});
  const ValueId square = cubes == Cubes::kSquare ? b.Op("SQUARE", {x}) : b.Op("MUL", {x, x});
  return b.Op("MUL", {square, x});
}

TEST(Gelu, ByTanhFromItsParts) {
  for (const Cubes cubes : {Cubes::kProducts, Cubes::kSquare, Cubes::kPower}) {
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({3, 7}), 9);
    const ValueId cubic = b.Op("MUL", {Cube(b, x, cubes), b.Scalar(0.044715f)});
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
  const ValueId cubic = b.Op("MUL", {Cube(b, x, Cubes::kProducts), b.Scalar(0.05f)});
  const ValueId inner = b.Op("MUL", {b.Scalar(0.7978845608f), b.Op("ADD", {x, cubic})});
  const ValueId gate = b.Op("ADD", {b.Op("TANH", {inner}), b.Scalar(1)});
  b.Output(b.Op("MUL", {b.Op("MUL", {x, b.Scalar(0.5f)}), gate}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops()) {
    EXPECT_EQ(ops.find("gelu"), std::string::npos) << ops;
  }
}

const Attributes kKeepDims = {{"keep_dims", 1}};

// 1 / sqrt(variance + epsilon) of rows with this mean.
ValueId InverseDeviation(GraphBuilder& b, ValueId x, ValueId mean) {
  const ValueId squares = b.Op("SQUARED_DIFFERENCE", {x, mean});
  const ValueId variance = b.Op("MEAN", {squares, b.Ints({-1})}, kKeepDims);
  return b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(1e-3f)})});
}

TEST(LayerNorm, AsKerasExpandsIt) {
  for (const bool negated : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({5, 7}), 12);
    const ValueId mean = b.Op("MEAN", {x, b.Ints({-1})}, kKeepDims);
    const ValueId g = b.Op("MUL", {InverseDeviation(b, x, mean), b.Constant({1, 12})});
    const ValueId beta = b.Constant({1, 12});
    const ValueId shift = negated ? b.Op("ADD", {b.Op("MUL", {b.Op("NEG", {mean}), g}), beta})
                                  : b.Op("SUB", {beta, b.Op("MUL", {mean, g})});
    b.Output(b.Op("ADD", {b.Op("MUL", {x, g}), shift}));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
    EXPECT_THAT(outcome.ops(), ElementsAre("FULLY_CONNECTED", "FUSELITE_LAYER_NORM"));
  }
}

// Means without their dimension, which reshapes bring back; gain and shift, where there are any,
// come as operators of their own.
TEST(LayerNorm, AsThePyTorchConverterExpandsIt) {
  for (const bool scaled : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Dense(b.Input({1, 5, 7}), 12);
    const ValueId flat = b.Op("RESHAPE", {x, b.Ints({1, 35 / 7, 12})});
    const ValueId axes = b.Ints({0, 2}), kept = b.Ints({1, 5, 1});
    const ValueId mean = b.Op("MEAN", {flat, axes});
    const ValueId squares = b.Op("SQUARED_DIFFERENCE", {flat, b.Op("RESHAPE", {mean, kept})});
    const ValueId variance = b.Op("MEAN", {squares, axes});
    const ValueId r = b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(1e-5f)})});
    const ValueId shift = b.Op("SUB", {b.Scalar(0), b.Op("MUL", {r, mean})});
    const ValueId scaled_x = b.Op("MUL", {flat, b.Op("RESHAPE", {r, kept})});
    ValueId v = b.Op("ADD", {scaled_x, b.Op("RESHAPE", {shift, kept})});
    if (scaled) v = b.Op("ADD", {b.Op("MUL", {v, b.Constant({12})}), b.Constant({12})});
    b.Output(b.Dense(v, 3));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
    EXPECT_THAT(ops, ElementsAre("FULLY_CONNECTED",
                                 scaled ? "FUSELITE_LAYER_NORM + mul + add" : "FUSELITE_LAYER_NORM",
                                 "FULLY_CONNECTED"));
  }
}

// With as many rows as channels, a mean that is not brought back repeats along a wrong dimension.
TEST(LayerNorm, NotWhereAMeanRepeatsByRow) {
  GraphBuilder b;
  const ValueId x = b.Input({6, 6});
  const ValueId axes = b.Ints({1});
  const ValueId mean = b.Op("MEAN", {x, axes});
  const ValueId variance = b.Op("MEAN", {b.Op("SQUARED_DIFFERENCE", {x, mean}), axes});
  const ValueId r = b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(1e-3f)})});
  const ValueId shift = b.Op("SUB", {b.Scalar(0), b.Op("MUL", {r, mean})});
  b.Output(b.Op("ADD", {b.Op("MUL", {x, r}), shift}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops()) {
    EXPECT_EQ(ops.find("LAYER_NORM"), std::string::npos) << ops;
  }
}

TEST(LayerNorm, CentredFirst) {
  enum class Squares { kOfDifferences, kSquare, kProduct };
  for (const Squares squares : {Squares::kOfDifferences, Squares::kSquare, Squares::kProduct}) {
    for (const bool scaled : {false, true}) {
      GraphBuilder b;
      const ValueId x = b.Input({2, 5, 12});
      const ValueId mean = b.Op("MEAN", {x, b.Ints({2})}, kKeepDims);
      const ValueId centred = b.Op("SUB", {x, mean});
      ValueId v;
      if (squares != Squares::kOfDifferences) {
        const ValueId square = squares == Squares::kSquare ? b.Op("SQUARE", {centred})
                                                           : b.Op("MUL", {centred, centred});
        const ValueId variance = b.Op("MEAN", {square, b.Ints({2})}, kKeepDims);
        v = b.Op("DIV", {centred, b.Op("SQRT", {b.Op("ADD", {variance, b.Scalar(1e-5f)})})});
      } else {
        v = b.Op("MUL", {centred, InverseDeviation(b, x, mean)});
      }
      if (scaled) v = b.Op("ADD", {b.Op("MUL", {v, b.Constant({12})}), b.Constant({12})});
      b.Output(v);
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                  ElementsAre("FUSELITE_LAYER_NORM"));
    }
  }
}

TEST(LayerNorm, NotWhereSomebodyReadsTheMean) {
  GraphBuilder b;
  const ValueId x = b.Input({5, 12});
  const ValueId mean = b.Op("MEAN", {x, b.Ints({-1})}, kKeepDims);
  b.Output(mean);
  b.Output(b.Op("MUL", {b.Op("SUB", {x, mean}), InverseDeviation(b, x, mean)}));
  EXPECT_GT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops().size(), 2u);
}

// One row has as many elements as a shift.
TEST(LayerNorm, IsNoShiftOfItself) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 12});
  const ValueId mean = b.Op("MEAN", {x, b.Ints({-1})}, kKeepDims);
  const ValueId y = b.Op("MUL", {b.Op("SUB", {x, mean}), InverseDeviation(b, x, mean)});
  b.Output(b.Op("ADD", {y, y}));
  ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
}

TEST(LayerNorm, NotOverAnotherDimension) {
  GraphBuilder b;
  const ValueId x = b.Input({5, 12});
  const ValueId mean = b.Op("MEAN", {x, b.Ints({0})}, kKeepDims);
  b.Output(b.Op("MUL", {b.Op("SUB", {x, mean}), InverseDeviation(b, x, mean)}));
  EXPECT_GT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops().size(), 2u);
}

// As exporters write it: the mean or the sum of squares, kept or brought back by a reshape, the
// gain by x * r, by r, or absent.
TEST(RmsNorm, FromItsParts) {
  for (const std::string mean : {"MEAN", "SUM / n", "SUM * (1/n)"}) {
    for (const std::string gain : {"", "of x * r", "of r", "of a quotient"}) {
      for (const bool kept : {false, true}) {
        SCOPED_TRACE(mean + ", gain " + gain);
        GraphBuilder b;
        const ValueId x = b.Dense(b.Input({5, 7}), 12);
        const ValueId squares = kept ? b.Op("MUL", {x, x}) : b.Op("SQUARE", {x});
        ValueId m =
            b.Op(mean.substr(0, mean.find(' ')), {squares, b.Ints({1})}, {{"keep_dims", kept}});
        if (mean == "SUM / n") m = b.Op("DIV", {m, b.Scalar(12)});
        if (mean == "SUM * (1/n)") m = b.Op("MUL", {b.Scalar(1.0f / 12), m});
        if (!kept) m = b.Op("RESHAPE", {m, b.Ints({5, 1})});
        m = b.Op("ADD", {m, b.Scalar(1e-5f)});
        const bool quotient = gain == "of a quotient";
        ValueId r = b.Op(quotient ? "SQRT" : "RSQRT", {m});
        if (gain == "of r") r = b.Op("MUL", {r, b.Constant({12})});
        ValueId y = quotient ? b.Op("DIV", {x, r}) : b.Op("MUL", {r, x});
        if (!gain.empty() && gain != "of r") y = b.Op("MUL", {y, b.Constant({1, 12})});
        b.Output(b.Dense(y, 3));
        EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                    ElementsAre("FULLY_CONNECTED", "FUSELITE_LAYER_NORM", "FULLY_CONNECTED"));
      }
    }
  }
}

TEST(RmsNorm, NotOfAnotherSumOrDivisor) {
  for (const int wrong : {0, 1, 2, 3}) {
    SCOPED_TRACE(wrong);
    GraphBuilder b;
    const ValueId x = b.Input({6, 6}), y = b.Input({6, 6});
    const ValueId squares = b.Op("MUL", {x, wrong == 0 ? y : x});
    ValueId m = b.Op("SUM", {squares, b.Ints({wrong == 1 ? 0 : 1})}, {{"keep_dims", wrong != 2}});
    m = b.Op("DIV", {m, b.Scalar(wrong == 3 ? 7.0f : 6.0f)});
    b.Output(b.Op("MUL", {x, b.Op("RSQRT", {b.Op("ADD", {m, b.Scalar(1e-5f)})})}));
    for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops()) {
      EXPECT_EQ(ops.find("LAYER_NORM"), std::string::npos) << ops;
    }
  }
}

// What differs by row stays a product.
TEST(Norms, TakeNoGainOfEachElement) {
  GraphBuilder b;
  const ValueId x = b.Input({6, 6}), mean = b.Op("MEAN", {x, b.Ints({1})}, kKeepDims);
  const ValueId y = b.Op("MUL", {b.Op("SUB", {x, mean}), InverseDeviation(b, x, mean)});
  b.Output(b.Op("MUL", {y, b.Constant({6, 6})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre(::testing::StartsWith("FUSELITE_LAYER_NORM")));
}

// Where dimensions are alike, or one, the mean of others and the gain of others have a shape that
// fits as well.
TEST(Norms, OfShapesThatAreEasilyMistaken) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    GraphBuilder b(seed);
    Random& random = b.random();
    SCOPED_TRACE(random.Trace());
    const auto shape =
        random.Pick<Shape>({{6, 6}, {1, 6}, {6, 1}, {1, 6, 6}, {6, 1, 6}, {6, 6, 6}, {1, 1}});
    const auto rank = static_cast<int32_t>(shape.rank());
    const auto fits = [&](const Shape& other) {
      for (int d = 1; d <= other.rank(); ++d) {
        if (d > rank || (other.dim(-d) != 1 && other.dim(-d) != shape.dim(-d))) return false;
      }
      return true;
    };
    std::vector<int32_t> axes, kept(shape.dims().begin(), shape.dims().end());
    for (int32_t d = 0; d < rank; ++d) {
      if (!random.Chance(d + 1 == rank ? 0.8 : 0.3)) continue;
      axes.push_back(random.Chance(0.5) ? d : d - rank);
      kept[d] = 1;
    }
    const bool keeps = random.Chance(0.5);
    if (kept[0] == 1 && rank > 1 && random.Chance(0.5)) kept.erase(kept.begin());
    const auto mean = [&](ValueId v) {
      const ValueId m = b.Op("MEAN", {v, b.Ints(axes)}, {{"keep_dims", keeps}});
      return fits(b.shape(m)) ? m : b.Op("RESHAPE", {m, b.Ints(kept)});
    };
    const auto operand = [&] {
      const auto other = random.Pick<Shape>({{6}, {1, 6}, {6, 1}, {1}, {6, 1, 1}, {1, 6, 1}});
      return b.Constant(fits(other) ? other : Shape({shape.dim(-1)}));
    };
    ValueId x = b.Input({static_cast<int32_t>(shape.elements())});
    x = b.Op("RESHAPE",
             {x, b.Ints(std::vector<int32_t>(shape.dims().begin(), shape.dims().end()))});
    const ValueId centred = random.Chance(0.5) ? x : b.Op("SUB", {x, mean(x)});
    const ValueId variance = mean(b.Op("SQUARE", {centred}));
    const ValueId r = b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(1e-3f)})});
    ValueId y = b.Op("MUL", {centred, r});
    if (random.Chance(0.7)) y = b.Op("MUL", {y, operand()});
    if (random.Chance(0.7)) y = b.Op("ADD", {y, operand()});
    b.Output(y);
    ExpectSameFused(b.graph(), 1e-4f);
    if (HasFailure()) return;
  }
}

TEST(Attention, WithScaleMaskAndEitherOrderOfKeys) {
  for (const bool by_rows : {false, true}) {
    for (const bool masked : {false, true}) {
      GraphBuilder b;
      const ValueId q = b.Input({2, 3, 9, 8});
      const ValueId k = by_rows ? b.Input({2, 3, 11, 8}) : b.Input({2, 3, 8, 11});
      const ValueId v = b.Input({2, 3, 11, 5});
      ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", by_rows}});
      scores = b.Op("MUL", {scores, b.Scalar(0.05f)});
      if (masked) scores = b.Op("ADD", {b.Input({1, 1, 9, 11}), scores});
      const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
      b.Output(b.Op("BATCH_MATMUL", {weights, v}));
      ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
      // Where the JIT emits the products, they stay apart until it emits attention.
      CompileOptions vectors = Fused(), reference = Unfused();
      vectors.jit = false;
      reference.isa = Isa::kScalar;
      const Outcome outcome = RunGraph(b.graph(), vectors);
      EXPECT_THAT(outcome.ops(), ElementsAre("FUSELITE_ATTENTION"));
      ExpectClose(RunGraph(b.graph(), reference).outputs, outcome.outputs, 2e-5f);
    }
  }
}

// As the PyTorch converter writes it: products of rank 3, the mask and SOFTMAX of rank 4.
TEST(Attention, WithHeadsThatReshapesTakeApart) {
  for (const bool masked : {false, true}) {
    GraphBuilder b;
    const ValueId q = b.Input({6, 9, 8}), k = b.Input({6, 8, 11}), v = b.Input({6, 11, 5});
    ValueId scores = b.Op("MUL", {b.Op("BATCH_MATMUL", {q, k}), b.Scalar(0.05f)});
    scores = b.Op("RESHAPE", {scores, b.Ints({2, 3, 9, 11})});
    if (masked) scores = b.Op("ADD", {scores, b.Input({2, 1, 1, 11})});
    ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
    weights = b.Op("RESHAPE", {weights, b.Ints({6, 9, 11})});
    b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
    ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
    CompileOptions vectors = Fused(), reference = Unfused();
    vectors.jit = false;
    reference.isa = Isa::kScalar;
    const Outcome outcome = RunGraph(b.graph(), vectors);
    EXPECT_THAT(outcome.ops(), ElementsAre("FUSELITE_ATTENTION + neg"));
    ExpectClose(RunGraph(b.graph(), reference).outputs, outcome.outputs, 2e-5f);
  }
}

// As shifted windows have it: a bias for each distance, and a mask of what a window must not see.
TEST(Attention, AddsItsTwoMasks) {
  for (const bool reshaped : {false, true}) {
    for (const bool first : {false, true}) {
      GraphBuilder b;
      const ValueId q = b.Input({6, 9, 8}), k = b.Input({6, 8, 11}), v = b.Input({6, 11, 5});
      const auto add = [&](ValueId scores, ValueId mask) {
        return first ? b.Op("ADD", {mask, scores}) : b.Op("ADD", {scores, mask});
      };
      ValueId scores = b.Op("MUL", {b.Op("BATCH_MATMUL", {q, k}), b.Scalar(0.05f)});
      scores = b.Op("RESHAPE", {scores, b.Ints({2, 3, 9, 11})});
      scores = add(scores, b.Constant({1, 3, 9, 11}, -1, 1));
      if (reshaped) scores = b.Op("RESHAPE", {scores, b.Ints({1, 2, 3, 9, 11})});
      scores = add(scores, reshaped ? b.Input({1, 2, 1, 9, 11}) : b.Input({2, 1, 1, 11}));
      if (reshaped) scores = b.Op("RESHAPE", {scores, b.Ints({2, 3, 9, 11})});
      ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
      weights = b.Op("RESHAPE", {weights, b.Ints({6, 9, 11})});
      b.Output(b.Op("NEG", {b.Op("BATCH_MATMUL", {weights, v})}));
      ExpectFusedEqualsUnfused(b.graph(), 2e-5f);
      CompileOptions vectors = Fused(), reference = Unfused();
      vectors.jit = false;
      reference.isa = Isa::kScalar;
      const Outcome outcome = RunGraph(b.graph(), vectors);
      EXPECT_THAT(outcome.ops(), ElementsAre("ADD", "FUSELITE_ATTENTION + neg"));
      ExpectClose(RunGraph(b.graph(), reference).outputs, outcome.outputs, 2e-5f);
    }
  }
}

// Layers give rows in which all heads lie side by side; no TRANSPOSE is left between them.
TEST(Attention, ReadsHeadsWhereLayersLeaveThem) {
  for (const int32_t batches : {1, 2}) {
    for (const bool turned : {false, true}) {
      for (const bool joined : {false, true}) {
        GraphBuilder b;
        const auto heads = [&](int32_t rows, std::vector<int32_t> permutation) {
          const ValueId x = b.Op("RESHAPE", {b.Op("NEG", {b.Input({batches, rows, 24})}),
                                             b.Ints({batches, rows, 3, 8})});
          const ValueId moved = b.Op("TRANSPOSE", {x, b.Ints(permutation)});
          if (!joined) return moved;
          const Shape& s = b.shape(moved);
          return b.Op("RESHAPE", {moved, b.Ints({batches * 3, s.dim(-2), s.dim(-1)})});
        };
        const ValueId q = heads(9, {0, 2, 1, 3});
        const ValueId k = turned ? heads(11, {0, 2, 3, 1}) : heads(11, {0, 2, 1, 3});
        const ValueId v = heads(11, {0, 2, 1, 3});
        const ValueId scores = b.Op("BATCH_MATMUL", {q, k}, {{"adj_y", !turned}});
        const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
        ValueId y = b.Op("BATCH_MATMUL", {weights, v});
        if (joined) y = b.Op("RESHAPE", {y, b.Ints({batches, 3, 9, 8})});
        y = b.Op("TRANSPOSE", {y, b.Ints({0, 2, 1, 3})});
        b.Output(b.Op("NEG", {b.Op("RESHAPE", {y, b.Ints({batches * 9, 24})})}));
        EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
                    ElementsAre("NEG", "NEG", "NEG", "FUSELITE_ATTENTION + neg"));
      }
    }
  }
}

// Three layers with dynamic range over the same rows, and attention to what they give.
ValueId AttentionOfProjections(GraphBuilder& b, ValueId x, std::vector<ValueId>* projections) {
  for (int i = 0; i < 3; ++i) {
    projections->push_back(b.Op("FULLY_CONNECTED",
                                {x, b.Int8Constant({24, 24}, 0.01f * (i + 1)), b.Constant({24})},
                                {{"keep_num_dims", 1}, {"asymmetric_quantize_inputs", 1}}));
  }
  const auto heads = [&](ValueId rows) {
    const ValueId apart = b.Op("RESHAPE", {rows, b.Ints({1, 9, 3, 8})});
    return b.Op("TRANSPOSE", {apart, b.Ints({0, 2, 1, 3})});
  };
  const ValueId scores =
      b.Op("BATCH_MATMUL", {heads((*projections)[0]), heads((*projections)[1])}, {{"adj_y", 1}});
  const ValueId weights = b.Op("SOFTMAX", {scores}, {{"beta", 1}});
  const ValueId means = b.Op("BATCH_MATMUL", {weights, heads((*projections)[2])});
  const ValueId y = b.Op("TRANSPOSE", {means, b.Ints({0, 2, 1, 3})});
  return b.Op("RESHAPE", {y, b.Ints({1, 9, 24})});
}

TEST(Attention, JoinsTheProjectionsThatItReads) {
  GraphBuilder b;
  std::vector<ValueId> projections;
  b.Output(AttentionOfProjections(b, b.Op("NEG", {b.Input({1, 9, 24})}), &projections));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("NEG", "FULLY_CONNECTED", "FUSELITE_ATTENTION"));
}

TEST(Attention, JoinsNoProjectionThatOthersRead) {
  GraphBuilder b;
  std::vector<ValueId> projections;
  b.Output(AttentionOfProjections(b, b.Op("NEG", {b.Input({1, 9, 24})}), &projections));
  b.Output(b.Op("NEG", {projections[1]}));
  b.Output(projections[2]);
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("NEG", "FULLY_CONNECTED", "FULLY_CONNECTED", "FULLY_CONNECTED",
                          "FUSELITE_ATTENTION", "NEG"));
}

// A single head, as SegFormer's first stage has it: its scores are a layer whose weights are keys.
TEST(Attention, OfASingleHeadMayMultiplyByALayer) {
  for (const bool constant : {false, true}) {
    GraphBuilder b;
    const ValueId k = constant ? b.Constant({11, 8}) : b.Op("NEG", {b.Input({11, 8})});
    const ValueId q = b.Op("NEG", {b.Input({1, 9, 8})}), v = b.Op("NEG", {b.Input({11, 5})});
    const ValueId scores = b.Op("FULLY_CONNECTED", {q, k}, {{"keep_num_dims", 1}});
    const ValueId scaled = b.Op("MUL", {scores, b.Scalar(0.35f)});
    const ValueId weights = b.Op("SOFTMAX", {b.Op("RESHAPE", {scaled, b.Ints({1, 1, 9, 11})})},  //
                                 {{"beta", 1}});
    const ValueId y = b.Op("BATCH_MATMUL", {b.Op("RESHAPE", {weights, b.Ints({9, 11})}), v});
    b.Output(b.Op("NEG", {y}));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
    EXPECT_EQ(std::ranges::count(ops, "FUSELITE_ATTENTION + neg"), constant ? 0 : 1);
  }
}

// One matrix of values for all heads is no batch of them.
TEST(Attention, NotWhereHeadsShareAMatrix) {
  GraphBuilder b;
  const ValueId q = b.Input({6, 9, 8}), k = b.Input({6, 8, 11}), v = b.Input({11, 5});
  const ValueId weights = b.Op("SOFTMAX", {b.Op("BATCH_MATMUL", {q, k})}, {{"beta", 1}});
  b.Output(b.Op("BATCH_MATMUL", {weights, v}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops()) {
    EXPECT_EQ(ops.find("FUSELITE_ATTENTION"), std::string::npos) << ops;
  }
}

TEST(Attention, NotWhereSomebodyReadsTheWeights) {
  GraphBuilder b;
  const ValueId q = b.Input({3, 9, 8}), k = b.Input({3, 8, 11}), v = b.Input({3, 11, 5});
  const ValueId weights = b.Op("SOFTMAX", {b.Op("BATCH_MATMUL", {q, k})}, {{"beta", 1}});
  b.Output(weights);
  b.Output(b.Op("BATCH_MATMUL", {weights, v}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("BATCH_MATMUL", "SOFTMAX", "BATCH_MATMUL"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
