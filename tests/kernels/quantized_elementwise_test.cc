// Elementwise operators of quantized values: the bits of LiteRT's reference kernels.
#include <vector>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/tables/lookup_table.h"
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

std::vector<int> UnaryOfInt16(OpTester tester, float in_scale, float out_scale,
                              const std::vector<int16_t>& values) {
  tester.Input(Values<int16_t>(DataType::kInt16, values, in_scale, 0));
  tester.Output(DataType::kInt16, {{out_scale}, {0}});
  return RunReference<int16_t>(tester);
}

TEST(QuantizedElementwiseTest, UnaryOfInt16) {
  const auto run = [](std::string_view name, float in_scale, float out_scale) {
    return UnaryOfInt16(OpTester(name), in_scale, out_scale,
                        {-32768, -12345, -300, -1, 0, 1, 777, 32767});
  };
  EXPECT_THAT(run("ABS", 0.001f, 0.0008f), ElementsAre(32767, 15431, 375, 1, 0, 1, 971, 32767));
  EXPECT_THAT(run("EXP", 0.0002f, 0.02f), ElementsAre(0, 4, 47, 50, 50, 50, 58, 32767));
  EXPECT_THAT(run("GELU", 0.0001f, 0.0001f), ElementsAre(-18, -1339, -147, 0, 0, 1, 412, 32749));
  EXPECT_THAT(run("RELU6", 0.001f, 0.0008f), ElementsAre(0, 0, 0, 0, 0, 1, 971, 7500));
  // Any scale, and the power of two that needs no multiplier.
  EXPECT_THAT(run("LOGISTIC", 0.0003f, 0x1p-15f),
              ElementsAre(2, 788, 15647, 16381, 16384, 16387, 18285, 32766));
  EXPECT_THAT(run("LOGISTIC", 0x1p-12f, 0x1p-15f),
              ElementsAre(11, 1534, 15784, 16382, 16384, 16386, 17933, 32757));
  EXPECT_THAT(run("TANH", 0.0001f, 0x1p-15f),
              ElementsAre(-32675, -27652, -984, -3, 0, 3, 2542, 32675));
  EXPECT_THAT(run("TANH", 0x1p-11f, 0x1p-15f),
              ElementsAre(-32767, -32767, -4766, -16, 0, 16, 11868, 32767));
  OpTester leaky("LEAKY_RELU");
  leaky.params<LeakyReluParams>().alpha = -0.3f;
  EXPECT_THAT(UnaryOfInt16(leaky, 0.001f, 0.0008f, {-32768, -12345, -300, -1, 0, 1, 777, 32767}),
              ElementsAre(12288, 4630, 113, 1, 0, 1, 971, 32767));
}

TEST(QuantizedElementwiseTest, UnaryOfPositiveInt16) {
  const auto run = [](std::string_view name, float out_scale) {
    return UnaryOfInt16(OpTester(name), 0.001f, out_scale,
                        {1, 2, 50, 300, 4000, 12345, 20000, 32767});
  };
  EXPECT_THAT(run("LOG", 0.0005f),
              ElementsAre(-26130, -25956, -17615, -2432, 2772, 5027, 5991, 6979));
  EXPECT_THAT(run("RSQRT", 0.002f), ElementsAre(25032, 24845, 15904, 921, 250, 143, 112, 87));
  EXPECT_THAT(run("SQRT", 0.0003f), ElementsAre(105, 149, 745, 1825, 6666, 11711, 14907, 19080));
}

TEST(QuantizedElementwiseTest, RootsOfNegativeNumbersFailTheRun) {
  const auto run = [](std::string_view name, DataType type, int32_t zero_point, int least) {
    OpTester tester(name);
    const Quantization quantization{{0.1f}, {zero_point}};
    tester.Input(
        type == DataType::kInt8
            ? TestTensor::Of<int8_t>(type, {2}, {static_cast<int8_t>(least), 10}, quantization)
            : TestTensor::Of<int16_t>(type, {2}, {static_cast<int16_t>(least), 10}, quantization));
    tester.Output(type, quantization);
    EXPECT_TRUE(tester.Infer().ok());
    EXPECT_EQ(FailsOnNegatives(tester.op), type == DataType::kInt16 || zero_point > -128);
    const StatusCode code = tester.Run("reference", Isa::kScalar).status().code();
    if (type == DataType::kInt16 && name == "RSQRT") {  // with vectors, too
      EXPECT_EQ(tester.Run("highway", DetectIsa()).status().code(), code);
    }
    return code;
  };
  for (const char* name : {"SQRT", "RSQRT"}) {
    EXPECT_EQ(run(name, DataType::kInt8, -5, -6), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(run(name, DataType::kInt8, -5, -5), StatusCode::kOk) << name;
    EXPECT_EQ(run(name, DataType::kInt8, -128, -128), StatusCode::kOk) << name;
    EXPECT_EQ(run(name, DataType::kInt16, 0, -1), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(run(name, DataType::kInt16, 0, 0), StatusCode::kOk) << name;
  }
}

TEST(QuantizedElementwiseTest, SignsOfIntegersWithoutScales) {
  const auto run = [](std::string_view name) {
    OpTester tester(name);
    tester.Input(TestTensor::Of<int16_t>(DataType::kInt16, {3}, {-32768, -5, 7}));
    return RunReference<int16_t>(tester);
  };
  EXPECT_THAT(run("ABS"), ElementsAre(-32768, 5, 7));
  EXPECT_THAT(run("NEG"), ElementsAre(-32768, 5, -7));
  OpTester bytes("NEG");
  bytes.Input(TestTensor::Of<int8_t>(DataType::kInt8, {3}, {-128, -5, 7}));
  EXPECT_THAT(RunReference<int8_t>(bytes), ElementsAre(-128, 5, -7));
}

// Scales of both inputs and of the output; the values are the test's own.
std::vector<int> BinaryOfInt16(std::string_view name, float x_scale, float y_scale, float out_scale,
                               bool power_of_two = false) {
  OpTester tester(name);
  tester.params<ArithmeticParams>().pot_scale_int16 = power_of_two;
  tester.Input(Values<int16_t>(DataType::kInt16, {-32768, -3000, 5, 32767}, x_scale, 0));
  tester.Input(Values<int16_t>(DataType::kInt16, {12000, -77, 901, -32768}, y_scale, 0));
  tester.Output(DataType::kInt16, {{out_scale}, {0}});
  return RunReference<int16_t>(tester);
}

TEST(QuantizedElementwiseTest, BinaryOfInt16) {
  EXPECT_THAT(BinaryOfInt16("ADD", 0.0011f, 0.0007f, 0.0012f),
              ElementsAre(-23037, -2795, 530, 10922));
  EXPECT_THAT(BinaryOfInt16("SUB", 0.0011f, 0.0007f, 0.0018f),
              ElementsAre(-24692, -1803, -347, 32767));
  EXPECT_THAT(BinaryOfInt16("MUL", 0.0011f, 0.0007f, 0.02f), ElementsAre(-15139, 9, 0, -32768));
  EXPECT_THAT(BinaryOfInt16("DIV", 0.001f, 0.0007f, 0.00006f),
              ElementsAre(-32768, 32767, 132, -23809));
  EXPECT_THAT(BinaryOfInt16("ADD", 0.5f, 0.25f, 0.5f, true),
              ElementsAre(-26768, -3039, 456, 16383));
  EXPECT_THAT(BinaryOfInt16("SUB", 0.125f, 0.5f, 0.5f, true),
              ElementsAre(-20192, -673, -900, 32767));
}

TEST(QuantizedElementwiseTest, PreluOfInt16HasAnAlphaOfInt8) {
  OpTester tester("PRELU");
  tester.Input(Values<int16_t>(DataType::kInt16, {-32768, -3000, 5, 32767}, 0.0011f, 0));
  tester.Input(Values<int8_t>(DataType::kInt8, {100, -77, 90, -128}, 0.02f, -4));
  tester.Output(DataType::kInt16, {{0.0012f}, {0}});
  EXPECT_THAT(RunReference<int16_t>(tester), ElementsAre(-32768, 4015, 5, 30036));
}

TEST(QuantizedElementwiseTest, IntegersWithoutScalesWrapAround) {
  OpTester sum("ADD");
  sum.Input(TestTensor::Of<int16_t>(DataType::kInt16, {2}, {32767, -3000}));
  sum.Input(TestTensor::Of<int16_t>(DataType::kInt16, {2}, {2, -77}));
  EXPECT_THAT(RunReference<int16_t>(sum), ElementsAre(-32767, -3077));
  OpTester product("MUL");
  product.Input(TestTensor::Of<uint32_t>(DataType::kUInt32, {2}, {3000000000, 7}));
  product.Input(TestTensor::Of<uint32_t>(DataType::kUInt32, {2}, {3, 8}));
  EXPECT_THAT(RunReference<uint32_t>(product), ElementsAre(410065408, 56));
}

TEST(QuantizedElementwiseTest, EqualityOfInt16IsThatOfRealValues) {
  OpTester tester("EQUAL");
  tester.Input(Values<int16_t>(DataType::kInt16, {-300, 7, 8, 100}, 0.001f, 0));
  tester.Input(Values<int16_t>(DataType::kInt16, {-302, 6, 20, 100}, 0.001f, 0));
  EXPECT_THAT(RunReference<bool>(tester), ElementsAre(1, 1, 0, 1));
}

// What LiteRT's kernel gives on x86-64 and aarch64, whose shifts by 32 bits and more are by the
// rest: 1/1 and 100/7 of a step of 1, and nothing by something.
TEST(QuantizedElementwiseTest, QuotientsOfLargeStepsAreThoseOfLiteRt) {
  OpTester tester("DIV");
  tester.Input(Values<int8_t>(DataType::kInt8, {1, 100, 0, -100, 127}, 1.0f, 0));
  tester.Input(Values<int8_t>(DataType::kInt8, {1, 7, 5, 7, -128}, 1.0f, 0));
  tester.Output(DataType::kInt8, {{1.0f}, {0}});
  EXPECT_THAT(RunReference<int8_t>(tester), ElementsAre(1, 14, 1, -14, -1));
}

TEST(QuantizedElementwiseTest, DivisionByTheZeroPointFailsTheRun) {
  OpTester tester("DIV");
  tester.Input(Values<int8_t>(DataType::kInt8, {1}, 0.05f, 3));
  tester.Input(Values<int8_t>(DataType::kInt8, {-4}, 0.02f, -4));
  tester.Output(DataType::kInt8, {{0.02f}, {0}});
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.Run("reference", Isa::kScalar).status().code(), StatusCode::kInvalidArgument);
}

TEST(QuantizedElementwiseTest, RefusesASlopeThatIsNoNumber) {
  for (const float alpha : {NAN, INFINITY}) {
    OpTester tester("LEAKY_RELU");
    tester.Input(TestTensor({.type = DataType::kUInt8, .shape = {2}, .quantization = {{1}, {0}}}));
    tester.Output(DataType::kUInt8, {{1}, {0}});
    tester.params<LeakyReluParams>().alpha = alpha;
    EXPECT_EQ(tester.Infer().code(), StatusCode::kUnsupported) << alpha;
  }
}

TEST(QuantizedElementwiseTest, RefusesWhatTfLiteComputesOtherwise) {
  const auto infer = [](std::string_view name, DataType type, float x, float y, float out) {
    OpTester tester(name);
    tester.Input(TestTensor({.type = type, .shape = {2}, .quantization = {{x}, {0}}}));
    tester.Input(TestTensor({.type = type, .shape = {2}, .quantization = {{y}, {0}}}));
    tester.Output(type, {{out}, {0}});
    return tester.Infer().code();
  };
  EXPECT_EQ(infer("ADD", DataType::kInt16, 0.5f, 0.25f, 0.25f), StatusCode::kUnsupported);
  EXPECT_EQ(infer("ADD", DataType::kInt16, 0.5f, 0.25f, 0.3f), StatusCode::kOk);
  EXPECT_EQ(infer("SQUARED_DIFFERENCE", DataType::kInt8, 1, 1, 1e-4f), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace fuselite::kernels::testing
