// Elementwise operators of quantized values: the bits of LiteRT's reference kernels.
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

template <class T>
TestTensor Values(DataType type, const std::vector<T>& values, float scale, int32_t zero_point) {
  return TestTensor::Of<T>(type, {static_cast<int32_t>(values.size())}, values,
                           {{scale}, {zero_point}});
}

template <class T>
std::vector<int> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  if (!outputs.ok()) return {};
  const std::vector<T> values = (*outputs)[0].values<T>();
  return std::vector<int>(values.begin(), values.end());
}

// Expected values are those of LiteRT 2.3.0 with BUILTIN_REF.
std::vector<int> Binary(std::string_view name, float out_scale, int32_t out_zero_point,
                        Activation activation = Activation::kNone) {
  OpTester tester(name);
  if (HasActivation(*BinaryKindOf(*tester.op.op))) {
    tester.params<ArithmeticParams>().activation = activation;
  }
  tester.Input(Values<int8_t>(DataType::kInt8, {-128, -60, -20, 0, 5, 60, 100, 127}, 0.05f, 3));
  tester.Input(Values<int8_t>(DataType::kInt8, {-100, -31, -9, 1, 9, 30, 77, 127}, 0.02f, -4));
  tester.Output(DataType::kInt8, {{out_scale}, {out_zero_point}});
  return RunReference<int8_t>(tester);
}

TEST(QuantizedElementwiseTest, BinaryOfInt8) {
  EXPECT_THAT(Binary("DIV", 0.02f, 1), ElementsAre(127, 127, 127, -74, 20, 127, 127, 119));
  EXPECT_THAT(Binary("PRELU", 0.06f, -2), ElementsAre(127, 26, 0, -2, 0, 46, 79, 101));
  EXPECT_THAT(Binary("SQUARED_DIFFERENCE", 0.3f, -100),
              ElementsAre(-29, -77, -96, -100, -100, -84, -65, -57));
  EXPECT_THAT(Binary("MUL", 0.05f, 10, Activation::kRelu),
              ElementsAre(127, 44, 12, 10, 11, 49, 127, 127));
  EXPECT_THAT(Binary("SUB", 0.06f, 5), ElementsAre(-72, -39, -13, 1, 2, 41, 59, 65));
}

TEST(QuantizedElementwiseTest, UnaryOfInt8) {
  const auto run = [](std::string_view name, float out_scale, int32_t out_zero_point) {
    OpTester tester(name);
    tester.Input(Values<int8_t>(DataType::kInt8, {-20, -19, -10, 0, 5, 60, 100, 127}, 0.05f, -20));
    tester.Output(DataType::kInt8, {{out_scale}, {out_zero_point}});
    return RunReference<int8_t>(tester);
  };
  EXPECT_THAT(run("ABS", 0.04f, -100), ElementsAre(-100, -99, -87, -75, -69, 0, 50, 84));
  EXPECT_THAT(run("SQRT", 0.02f, -110), ElementsAre(-110, -99, -75, -60, -55, -10, 12, 25));
  EXPECT_THAT(run("RSQRT", 0.02f, -120), ElementsAre(127, 104, -49, -70, -75, -95, -100, -102));
  EXPECT_THAT(run("LOG", 0.03f, 7), ElementsAre(-128, -93, -16, 7, 14, 53, 67, 73));
}

std::vector<int> BinaryOfInt16(std::string_view name, float out_scale) {
  OpTester tester(name);
  tester.params<ArithmeticParams>().pot_scale_int16 = false;
  tester.Input(Values<int16_t>(DataType::kInt16, {-32768, -3000, 5, 32767}, 0.0011f, 0));
  tester.Input(Values<int16_t>(DataType::kInt16, {12000, -77, 900, -32768}, 0.0007f, 0));
  tester.Output(DataType::kInt16, {{out_scale}, {0}});
  return RunReference<int16_t>(tester);
}

TEST(QuantizedElementwiseTest, BinaryOfInt16) {
  EXPECT_THAT(BinaryOfInt16("ADD", 0.0012f), ElementsAre(-23037, -2795, 530, 10922));
  EXPECT_THAT(BinaryOfInt16("SUB", 0.0018f), ElementsAre(-24692, -1803, -347, 32767));
  EXPECT_THAT(BinaryOfInt16("MUL", 0.02f), ElementsAre(-15139, 9, 0, -32768));
}

TEST(QuantizedElementwiseTest, DivisionByTheZeroPointFailsTheRun) {
  OpTester tester("DIV");
  tester.Input(Values<int8_t>(DataType::kInt8, {1}, 0.05f, 3));
  tester.Input(Values<int8_t>(DataType::kInt8, {-4}, 0.02f, -4));
  tester.Output(DataType::kInt8, {{0.02f}, {0}});
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.Run("reference", Isa::kScalar).status().code(), StatusCode::kInvalidArgument);
}

TEST(QuantizedElementwiseTest, RefusesWhatTfLiteComputesOtherwise) {
  const auto infer = [](std::string_view name, DataType type, float x, float y, float out) {
    OpTester tester(name);
    tester.Input(TestTensor({.type = type, .shape = {2}, .quantization = {{x}, {0}}}));
    tester.Input(TestTensor({.type = type, .shape = {2}, .quantization = {{y}, {0}}}));
    tester.Output(type, {{out}, {0}});
    return tester.Infer().code();
  };
  EXPECT_EQ(infer("ADD", DataType::kInt16, 0.5f, 0.25f, 0.5f), StatusCode::kUnsupported);
  EXPECT_EQ(infer("ADD", DataType::kInt16, 0.5f, 0.25f, 0.3f), StatusCode::kOk);
  EXPECT_EQ(infer("DIV", DataType::kInt8, 1, 1, 1), StatusCode::kUnsupported);
  EXPECT_EQ(infer("DIV", DataType::kInt8, 1, 1, 0.01f), StatusCode::kOk);
  EXPECT_EQ(infer("SQUARED_DIFFERENCE", DataType::kInt8, 1, 1, 1e-4f), StatusCode::kUnsupported);
}

struct Shapes {
  Shape x, y;
};

// Scales over decades, so that the shifts behind the multipliers go from left to far right.
TestTensor RandomTensor(Random& random, DataType type, const Shape& shape) {
  const bool wide = type == DataType::kInt16;
  const int32_t low = wide ? -32768 : type == DataType::kInt8 ? -128 : 0;
  const int32_t high = wide ? 32767 : type == DataType::kInt8 ? 127 : 255;
  const int32_t zero_point = wide ? 0 : static_cast<int32_t>(random.Int(low, high));
  TestTensor tensor({.type = type,
                     .shape = shape,
                     .quantization = {{std::pow(10.0f, random.Float(-4, 1))}, {zero_point}}},
                    random.Int(0, 3) * (wide ? 2 : 1));
  tensor.Fill(random, low, high);
  return tensor;
}

class QuantizedElementwiseIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(QuantizedElementwiseIsaTest, VectorsHaveTheBitsOfTheReference) {
  const Shapes kShapes[] = {{{3, 67}, {3, 67}},
                            {{2, 3, 4, 33}, {2, 1, 1, 33}},
                            {{2, 1, 1, 33}, {2, 5, 33}},
                            {{4, 1, 7}, {1, 5, 7}},
                            {{131}, {1}},
                            {{1}, {16}}};
  int computed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Pick({DataType::kInt8, DataType::kUInt8, DataType::kInt16});
    const Shapes& shapes = kShapes[random.Int(0, 5)];
    OpTester tester(random.Pick({"ADD", "SUB", "MUL"}));
    tester.params<ArithmeticParams>().activation =
        random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
    tester.Input(RandomTensor(random, type, shapes.x));
    tester.Input(RandomTensor(random, type, shapes.y));
    tester.Output(type, RandomTensor(random, type, {1}).info().quantization);
    if (!tester.Infer().ok()) continue;  // scales that TFLite refuses; counted below
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
    if (!Includes(GetParam(), Isa::kSsse3) && !Includes(GetParam(), Isa::kNeon)) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ++computed;
    if (type == DataType::kInt16) {
      ExpectSame<int16_t>((*expected)[0], (*actual)[0], tester.op.op->name);
    } else {
      ExpectSame<int8_t>((*expected)[0], (*actual)[0], tester.op.op->name);
    }
  }
  if (Includes(GetParam(), Isa::kSsse3) || Includes(GetParam(), Isa::kNeon)) {
    EXPECT_GT(computed, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, QuantizedElementwiseIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
