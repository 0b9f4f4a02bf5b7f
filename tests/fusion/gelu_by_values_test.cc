// GELU by erf in the nodes that JAX, and converters from ONNX, make of it.
#include <array>
#include <span>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

// What the polynomials of JAX's erfc are, highest power first.
struct Erfc {
  std::array<float, 9> below_two = {
      2.326819970068386e-2f,  -1.387039388740657e-1f, 3.687424674597105e-1f,
      -5.824733027278666e-1f, 6.210004621745983e-1f,  -4.944515323274145e-1f,
      3.404879937665872e-1f,  -2.741127028184656e-1f, 5.638259427386472e-1f};
  std::array<float, 8> above = {
      -1.047766399936249e+1f, 1.297719955372516e+1f, -7.495518717768503e+0f, 2.921019019210786e+0f,
      -1.015265279202700e+0f, 4.218463358204948e-1f, -2.820767439740514e-1f, 5.641895067754075e-1f};
  std::array<float, 7> erf = {
      7.853861353153693e-5f, -8.010193625184903e-4f, 5.188327685732524e-3f, -2.685381193529856e-2f,
      1.128358514861418e-1f, -3.761262582423300e-1f, 1.128379165726710e+0f};
};

ValueId Polynomial(GraphBuilder& b, std::span<const float> coefficients, ValueId x) {
  ValueId sum = b.Op("MUL", {x, b.Scalar(coefficients[0])});
  for (size_t i = 1; i < coefficients.size(); ++i) {
    sum = b.Op("ADD", {sum, b.Scalar(coefficients[i])});
    if (i + 1 < coefficients.size()) sum = b.Op("MUL", {sum, x});
  }
  return sum;
}

// x erfc(-x / sqrt 2) / 2.
ValueId Gelu(GraphBuilder& b, ValueId x, const Erfc& erfc = {}) {
  const ValueId one = b.Scalar(1), two = b.Scalar(2), zero = b.Scalar(0);
  const ValueId z = b.Op("MUL", {b.Op("NEG", {x}), b.Scalar(0.70710677f)});
  const ValueId square = b.Op("MUL", {z, z}), minus = b.Op("NEG", {square});
  const ValueId size = b.Op("ABS", {z}), inverse = b.Op("DIV", {one, square});
  const ValueId scale = b.Op("MUL", {b.Op("EXP", {minus}), b.Op("DIV", {one, size})});
  const ValueId tail =
      b.Op("SELECT", {b.Op("LESS", {size, two}),  //
                      Polynomial(b, erfc.below_two, inverse), Polynomial(b, erfc.above, inverse)});
  ValueId outer = b.Op("MUL", {scale, tail});
  outer = b.Op("SELECT_V2", {b.Op("LESS", {minus, b.Scalar(-88.72284f)}), zero, outer});
  const ValueId negative = b.Op("SUB", {two, outer});
  outer = b.Op("SELECT", {b.Op("LESS", {z, zero}), negative, outer});
  const ValueId inner = b.Op("MUL", {z, Polynomial(b, erfc.erf, square)});
  const ValueId result = b.Op("SELECT", {b.Op("LESS", {size, one}),  //
                                         b.Op("SUB", {one, inner}), outer});
  return b.Op("MUL", {b.Op("MUL", {x, b.Scalar(0.5f)}), result});
}

TEST(GeluByValues, FromErfcOfJax) {
  GraphBuilder b;
  b.Output(b.Dense(Gelu(b, b.Dense(b.Input({5, 7}), 12)), 3));
  EXPECT_THAT(ExpectSameFused(b.graph(), 1e-6f).ops(),
              ElementsAre("FULLY_CONNECTED + gelu", "FULLY_CONNECTED"));
}

TEST(GeluByValues, OfWhatOthersReadToo) {
  GraphBuilder b;
  const ValueId x = b.Op("TANH", {b.Input({5, 7})});
  b.Output(x);
  b.Output(b.Op("ADD", {Gelu(b, x), x}));
  EXPECT_THAT(ExpectSameFused(b.graph(), 1e-6f).ops(), ElementsAre("TANH", "GELU + add"));
}

// The half before, between and behind the other products.
TEST(GeluByValues, FromErfInAnyOrder) {
  for (const int half : {0, 1, 2, 3}) {
    SCOPED_TRACE(half);
    GraphBuilder b;
    const auto halved = [&](int place, ValueId v) {
      return half == place ? b.Op("MUL", {v, b.Scalar(0.5f)}) : v;
    };
    const ValueId x = b.Dense(b.Input({5, 7}), 12);
    const ValueId z = half == 3 ? b.Op("DIV", {x, b.Scalar(1.4142135f)})
                                : b.Op("MUL", {x, b.Scalar(0.70710677f)});
    const ValueId sum = b.Op("ADD", {b.Op("FlexErf", {z}), b.Scalar(1)});
    const ValueId product = b.Op("MUL", {halved(0, x), halved(1, sum)});
    b.Output(b.Dense(half < 2 ? product : b.Op("MUL", {product, b.Scalar(0.5f)}), 3));
    EXPECT_THAT(ExpectSameFused(b.graph(), 1e-6f).ops(),
                ElementsAre("FULLY_CONNECTED + gelu", "FULLY_CONNECTED"));
  }
}

// Twice GELU is none.
TEST(GeluByValues, NotOfErfWithoutItsHalf) {
  GraphBuilder b;
  const ValueId x = b.Op("ABS", {b.Input({5, 7})});
  const ValueId erf = b.Op("FlexErf", {b.Op("MUL", {x, b.Scalar(0.70710677f)})});
  b.Output(b.Op("MUL", {x, b.Op("ADD", {erf, b.Scalar(1)})}));
  EXPECT_THAT(ExpectSameFused(b.graph(), 1e-6f).ops(), ElementsAre("ABS", "MUL + erf + add + mul"));
}

// A coefficient that is one part in a thousand larger makes another function.
TEST(GeluByValues, NotOfOtherFunctions) {
  for (const int wrong : {0, 1, 2, 3}) {
    SCOPED_TRACE(wrong);
    GraphBuilder b;
    const ValueId x = b.Op("ABS", {b.Input({5, 7})});
    Erfc erfc;
    if (wrong == 0) erfc.below_two[8] *= 1.001f;
    if (wrong == 1) erfc.above[7] *= 1.001f;
    if (wrong == 2) erfc.erf[6] *= 1.001f;
    if (wrong == 3) erfc.erf[4] *= 1.01f;
    b.Output(Gelu(b, x, erfc));
    for (const std::string& ops : ExpectSameFused(b.graph(), 1e-5f).ops()) {
      EXPECT_EQ(ops.find("gelu"), std::string::npos) << ops;
    }
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
