// Normalizations that exporters spell out of means, squares and roots.
#include <algorithm>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

const Attributes kKeepDims = {{"keep_dims", 1}};

// 1 / sqrt(variance + epsilon) of rows with this mean.
ValueId InverseDeviation(GraphBuilder& b, ValueId x, ValueId mean) {
  const ValueId squares = b.Op("SQUARED_DIFFERENCE", {x, mean});
  const ValueId variance = b.Op("MEAN", {squares, b.Ints({-1})}, kKeepDims);
  return b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(1e-3f)})});
}

TEST(LayerNorm, AsKerasExpandsIt) {
  enum class Shift { kDifference, kNegated, kNone };
  for (const Shift form : {Shift::kDifference, Shift::kNegated, Shift::kNone}) {
    GraphBuilder b;
    // With as many rows as channels, what lies along the wrong ones has the right shape, too.
    const ValueId x = b.Dense(b.Input({form == Shift::kDifference ? 5 : 12, 7}), 12);
    const ValueId mean = b.Op("MEAN", {x, b.Ints({-1})}, kKeepDims);
    const ValueId g = b.Op("MUL", {InverseDeviation(b, x, mean), b.Constant({1, 12})});
    const ValueId beta = b.Constant({1, 12});
    ValueId shift;
    if (form == Shift::kDifference) {
      shift = b.Op("SUB", {beta, b.Op("MUL", {mean, g})});
    } else {
      shift = b.Op("MUL", {b.Op("NEG", {mean}), g});
      if (form == Shift::kNegated) shift = b.Op("ADD", {shift, beta});
    }
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
      const ValueId x = b.Input({2, scaled ? 12 : 5, 12});
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

// Flax: means as sums, the variance as a difference that is kept from falling below 0.
TEST(LayerNorm, AsFlaxExpandsIt) {
  for (const std::string clamp : {"", "fused", "RELU", "MAXIMUM"}) {
    for (const bool scaled : {false, true}) {
      SCOPED_TRACE(clamp);
      GraphBuilder b;
      const int32_t rows = scaled ? 5 : 12;
      const ValueId x = b.Dense(b.Input({1, rows, 7}), 12, {{"keep_num_dims", 1}});
      const auto mean_of = [&](ValueId v) {
        return b.Op("MUL", {b.Op("SUM", {v, b.Ints({2})}), b.Scalar(1.0f / 12)});
      };
      const ValueId mean = mean_of(x), of_squares = mean_of(b.Op("MUL", {x, x}));
      ValueId variance = b.Op("SUB", {of_squares, b.Op("MUL", {mean, mean})},
                              {{"fused_activation_function", clamp == "fused" ? kRelu : 0}});
      if (clamp == "RELU") variance = b.Op("RELU", {variance});
      if (clamp == "MAXIMUM") variance = b.Op("MAXIMUM", {variance, b.Scalar(0)});
      const auto kept = [&](ValueId v) { return b.Op("RESHAPE", {v, b.Ints({1, rows, 1})}); };
      ValueId r = b.Op("RSQRT", {kept(b.Op("ADD", {variance, b.Scalar(1e-3f)}))});
      if (scaled) r = b.Op("MUL", {r, b.Constant({1, 1, 12})});
      ValueId y = b.Op("MUL", {b.Op("SUB", {x, kept(mean)}), r});
      if (scaled) y = b.Op("ADD", {y, b.Constant({1, 1, 12})});
      b.Output(b.Dense(y, 3));
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops(),
                  ElementsAre("FULLY_CONNECTED", "FUSELITE_LAYER_NORM", "FULLY_CONNECTED"));
    }
  }
}

// The square of a mean that repeats along another dimension is none of the rows' means.
TEST(LayerNorm, NotOfAnotherDifferenceOfSquares) {
  for (const int wrong : {0, 1, 2}) {
    SCOPED_TRACE(wrong);
    GraphBuilder b;
    const ValueId x = b.Input({6, 6}), other = b.Input({6, 6});
    const ValueId axes = b.Ints({1});
    const ValueId mean = b.Op("MEAN", {x, axes}, kKeepDims);
    const ValueId of_squares =
        b.Op("MEAN", {b.Op("SQUARE", {wrong == 0 ? other : x}), axes}, {{"keep_dims", wrong != 1}});
    const ValueId subtracted = wrong == 2 ? b.Op("MEAN", {other, axes}, kKeepDims) : mean;
    const ValueId variance =
        b.Op("RELU", {b.Op("SUB", {of_squares, b.Op("SQUARE", {subtracted})})});
    const ValueId r = b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(0.5f)})});
    b.Output(b.Op("MUL", {b.Op("SUB", {x, mean}), r}));
    for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops()) {
      EXPECT_EQ(ops.find("LAYER_NORM"), std::string::npos) << ops;
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
    for (const std::string gain : {"", "of x * r", "of r", "of a quotient", "of x * (1 / root)"}) {
      for (const bool kept : {false, true}) {
        SCOPED_TRACE(mean + ", gain " + gain);
        GraphBuilder b;
        const int32_t rows = kept ? 12 : 5;
        const ValueId x = b.Dense(b.Input({rows, 7}), 12);
        const ValueId squares = kept ? b.Op("MUL", {x, x}) : b.Op("SQUARE", {x});
        ValueId m =
            b.Op(mean.substr(0, mean.find(' ')), {squares, b.Ints({1})}, {{"keep_dims", kept}});
        if (mean == "SUM / n") m = b.Op("DIV", {m, b.Scalar(12)});
        if (mean == "SUM * (1/n)") m = b.Op("MUL", {b.Scalar(1.0f / 12), m});
        if (!kept) m = b.Op("RESHAPE", {m, b.Ints({rows, 1})});
        m = b.Op("ADD", {m, b.Scalar(1e-5f)});
        const bool quotient = gain == "of a quotient", inverse = gain == "of x * (1 / root)";
        ValueId r = b.Op(quotient || inverse ? "SQRT" : "RSQRT", {m});
        if (inverse) r = b.Op("DIV", {b.Scalar(1), r});
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

// Qwen 3 normalizes heads, whose squares Keras makes before it takes rows apart.
TEST(RmsNorm, OfHeadsOfRows) {
  for (const bool of_another : {false, true}) {
    GraphBuilder b;
    const ValueId rows = b.Dense(b.Input({5, 7}), 12), shape = b.Ints({5, 3, 4});
    const ValueId squared = of_another ? b.Op("NEG", {rows}) : rows;
    const ValueId heads = b.Op("RESHAPE", {rows, shape});
    const ValueId squares = b.Op("RESHAPE", {b.Op("MUL", {squared, squared}), shape});
    const ValueId m = b.Op("MEAN", {squares, b.Ints({2})}, kKeepDims);
    const ValueId r = b.Op("RSQRT", {b.Op("ADD", {m, b.Scalar(1e-5f)})});
    b.Output(b.Op("MUL", {b.Op("MUL", {heads, r}), b.Constant({4})}));
    const auto ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
    EXPECT_EQ(std::ranges::count(ops, "FUSELITE_LAYER_NORM"), of_another ? 0 : 1);
  }
}

TEST(RmsNorm, NotOfAnotherInverse) {
  for (const float one : {1.0f, 2.0f}) {
    GraphBuilder b;
    const ValueId x = b.Input({6, 6});
    const ValueId m = b.Op("MEAN", {b.Op("SQUARE", {x}), b.Ints({1})}, kKeepDims);
    const ValueId root = b.Op("SQRT", {b.Op("ADD", {m, b.Scalar(1e-5f)})});
    b.Output(b.Op("MUL", {x, b.Op("DIV", {b.Scalar(one), root})}));
    const auto ops = ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops();
    EXPECT_EQ(std::ranges::count(ops, "FUSELITE_LAYER_NORM"), one == 1 ? 1 : 0);
  }
}

// The first gain is the normalization's.
TEST(RmsNorm, HasOneGain) {
  GraphBuilder b;
  const ValueId x = b.Input({6, 6});
  const ValueId m = b.Op("MEAN", {b.Op("SQUARE", {x}), b.Ints({1})}, kKeepDims);
  const ValueId r = b.Op("RSQRT", {b.Op("ADD", {m, b.Scalar(1e-5f)})});
  const ValueId y = b.Op("MUL", {x, b.Op("MUL", {r, b.Constant({6})})});
  b.Output(b.Op("MUL", {y, b.Constant({6})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 2e-5f).ops(),
              ElementsAre("FUSELITE_LAYER_NORM + mul"));
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
    const bool sums = random.Chance(0.3);
    const auto mean = [&](ValueId v) {
      ValueId m = b.Op(sums ? "SUM" : "MEAN", {v, b.Ints(axes)}, {{"keep_dims", keeps}});
      if (sums) m = b.Op("MUL", {m, b.Scalar(1.0f / 6)});
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
    ValueId variance = mean(b.Op("SQUARE", {centred}));
    if (random.Chance(0.3)) {
      const ValueId squared = b.Op("SQUARE", {mean(x)});
      variance = b.Op("RELU", {b.Op("SUB", {mean(b.Op("SQUARE", {x})), squared})});
    }
    const ValueId r = b.Op("RSQRT", {b.Op("ADD", {variance, b.Scalar(1e-3f)})});
    ValueId y = b.Op("MUL", {centred, r});
    if (random.Chance(0.7)) y = b.Op("MUL", {y, operand()});
    if (random.Chance(0.7)) y = b.Op("ADD", {y, operand()});
    b.Output(y);
    ExpectSameFused(b.graph(), 1e-4f);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
